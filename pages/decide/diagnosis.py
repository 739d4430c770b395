from uwml_core import ui
from uwml_core.analysis.diagnosis.headline import diagnosis_headline
from uwml_core.i18n import _
from uwml_core.runlog.reader import Run

run = ui.begin_page(_("Diagnosis"), _("What is wrong, and what do I do?"))


def body(run: Run) -> None:
    told, theme = ui.diagnosis(run), ui.current_theme()
    ui.headline(diagnosis_headline(told))
    for place, found in enumerate(told.findings):
        ui.finding_card(run, found, theme, place)
    if told.findings:
        ui.findings_download(told)
    ui.quiet_rules(told)


ui.follow(run, body)
ui.guide(
    _("Each rule looks for one known illness in the log; its limits were set on healthy runs."),
    _(
        "How sure: 50 % where a number just crosses its limit, 100 % where it lies far beyond what healthy "
        "runs show. It is no probability."
    ),
    _("A finding is a hint, not a verdict: look at the evidence first, then change one thing at a time."),
    _("A rule that lacks a column says so; log it to have the rule judge the run."),
)
