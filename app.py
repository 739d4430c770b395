"""Entry point of the app: frame and routing; ``streamlit run app.py``."""

import streamlit as st

from uwml_core.i18n import _
from uwml_core.ui import ICON, draw_frame, draw_training, end_children, plotly_route

# The server imports this file when it starts, so that routing is declared before the first visitor comes:
# otherwise that visitor, on a deep link, would be told by the older pages/ discovery that there is no page.
app = st.App(__file__, routes=[plotly_route()], lifespan=end_children)

if st.runtime.exists():
    st.set_page_config(page_title="UWML Lens", page_icon=str(ICON), layout="wide")
    draw_frame()
page = st.navigation(
    {
        _("Watch"): [
            st.Page("pages/watch/runs.py", title=_("Runs"), icon=":material/list:", default=True),
            st.Page("pages/watch/training.py", title=_("Training"), icon=":material/show_chart:"),
        ],
        _("Explain"): [
            st.Page("pages/explain/weight_curve.py", title=_("Weight curve"), icon=":material/tune:"),
            st.Page("pages/explain/modal_balance.py", title=_("Modal balance"), icon=":material/balance:"),
            st.Page("pages/explain/hard_negatives.py", title=_("Hard negatives"), icon=":material/compare:"),
            st.Page(
                "pages/explain/embedding_map.py", title=_("Embedding map"), icon=":material/bubble_chart:"
            ),
        ],
        _("Decide"): [
            st.Page("pages/decide/compare.py", title=_("Compare"), icon=":material/difference:"),
            st.Page("pages/decide/diagnosis.py", title=_("Diagnosis"), icon=":material/stethoscope:"),
        ],
        _("Share"): [
            st.Page("pages/share/learn.py", title=_("Learn"), icon=":material/school:"),
            st.Page("pages/share/share.py", title=_("Share"), icon=":material/share:"),
        ],
    }
)
if st.runtime.exists():
    # it links to pages, which are known now
    draw_training()
page.run()
