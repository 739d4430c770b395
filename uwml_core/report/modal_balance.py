"""Section: which direction lags and whether the controller is calm."""

from __future__ import annotations

from uwml_core.analysis.controller_log import controller_log
from uwml_core.analysis.lag import find_lag
from uwml_core.analysis.loss_settings import loss_unit
from uwml_core.analysis.modal_balance import Balance, balance_headline, lag_mark, modal_balance
from uwml_core.analysis.replay_validity import replay_validity
from uwml_core.analysis.training import phase_bands
from uwml_core.figures import modal_balance as figures
from uwml_core.figures.theme import Theme
from uwml_core.i18n import _
from uwml_core.report.content import Chart, Section
from uwml_core.report.markup import notes, table
from uwml_core.report.numbers import balance_notes, balance_rows
from uwml_core.report.source import Source
from uwml_core.weighting import UWMLConfig


def modal_balance_section(source: Source) -> Section:
    """Gaps, direction weights and contributions of the page Modal balance, with the run's parameters."""
    title, question = _("Modal balance"), _("Which direction lags, and is the controller calm?")
    log = controller_log(source.steps, source.directions)
    lag = find_lag(log)
    if lag.first_step is None:
        names = ", ".join(f"gap_{direction}" for direction in source.directions)
        text = _("This run has no mean margins ({names}) in its steps table.").format(names=names)
        return Section(key="modal_balance", title=title, question=question, headline=text)
    in_use = source.loss or UWMLConfig(curve="uniform")
    balance = modal_balance(source.steps, in_use, in_use, source.directions)

    def draw(theme: Theme) -> object:
        return figures.balance_figure(
            balance.lines.frame, balance.updates, theme, directions=source.directions,
            bands=phase_bands(source.steps), since=lag_mark(lag), height=430,
        )  # fmt: skip

    check = replay_validity(log, source.loss).reason
    return Section(
        key="modal_balance",
        title=title,
        question=question,
        headline=balance_headline(lag, balance, in_use, source.directions),
        blocks=[
            Chart(
                key="balance", title=_("Gaps and direction weights"), draw=draw, frame=balance.lines.frame,
                height=430, notes=(balance.lines.note, check), wide=True,
            ),
            _contributions(source, balance),
            table(balance_rows(balance.summary, tried=False)),
            notes(balance_notes(balance.summary)[0], balance_notes(balance.summary)[-1]),
        ],
    )  # fmt: skip


def _contributions(source: Source, balance: Balance) -> Chart:
    lines = balance.contributions

    def draw(theme: Theme) -> object:
        unit = loss_unit(source.loss)
        return figures.contributions_figure(
            lines.frame, theme, directions=source.directions, unit=unit, height=320
        )

    return Chart(
        key="contributions", title=_("Contributions to the loss"), draw=draw, frame=lines.frame, height=320,
        notes=(lines.note,), wide=True,
    )  # fmt: skip
