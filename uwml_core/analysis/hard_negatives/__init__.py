"""What the model confuses, one module per question.

All of them answer with confusions, a frame of one row per direction, anchor and wrong candidate:
``direction, item_id, caption, negative_item_id, negative_caption, margin, n, first_epoch, last_epoch`` and
what the question adds. In i2t the anchor is the picture of the item and the wrong candidate a caption of
another one, in t2i the other way round.
"""
