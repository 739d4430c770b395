from uwml_core import ui
from uwml_core.i18n import _

ui.begin_folder_page(_("Learn"), _("How does it work?"))
ui.lesson(ui.current_theme())
ui.lesson_sources()
