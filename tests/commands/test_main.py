"""The command line: which errors are one line, and what is loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uwml_core import __main__ as command_line
from uwml_core.__main__ import main
from uwml_core.runlog.writer import RunLogger
from uwml_core.training import TrainingStopped
from uwml_core.weighting import LOSS_PRESETS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "loss.centre=1"], "loss.centre is not a known setting; did you mean loss.center?"),
        (["--set", "loss.temperature=-1"], "temperature=-1 is out of range; expected > 0"),
        (["--preset", "vsep"], "preset='vsep' is unknown; did you mean vsepp?"),
        (["--config", "no.yaml"], "no.yaml cannot be read"),
        (["--resume", "no-run"], "resume='logs/no-run' is no folder"),
        (["--resume", ""], "--resume is empty; expected the folder of a run"),
        (["--set", "train.resume=r", "--run-id", "a"], "resume='logs/r' is no folder"),
        (["--run-id", "../a"], "run_id='../a' is no folder name"),
        (["--set", "data.path=emoji"], "emoji: is neither a file nor a shipped sample set"),
    ],
)
def test_what_the_user_can_mend_is_one_line_and_exit_code_2(capsys, words, message):
    assert main(["train", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("uwml: error: ")
    assert message in err
    assert err.count("\n") == 1


def test_missing_captions_are_one_line(capsys, tmp_path):
    path = tmp_path / "pairs.parquet"
    pq.write_table(pa.table({"item_id": ["a"], "split": ["train"], "image": [b"x"]}), path)
    assert main(["train", "--set", f"data.path={path}", "--set", f"run.root={tmp_path / 'logs'}"]) == 2
    assert "pairs.parquet, column 'captions': is missing" in capsys.readouterr().err


def test_a_logs_folder_that_cannot_be_made_is_one_line(capsys, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "/logs")

    monkeypatch.setattr("uwml_core.training.run_training", refuse)
    assert main(["train"]) == 2
    assert capsys.readouterr().err == "uwml: error: [Errno 13] Permission denied: '/logs'\n"


def test_a_run_that_another_process_writes_is_one_line(capsys, tmp_path, monkeypatch):
    with RunLogger(tmp_path, "run"):
        monkeypatch.setattr("uwml_core.training.run_training", lambda *_, **__: RunLogger(tmp_path, "run"))
        assert main(["train"]) == 2
    message = "run 'run' is being written by another process; wait until it ends or start another run"
    assert capsys.readouterr().err == f"uwml: error: {message}\n"


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (7, "Stopped after 7 steps, everything saved. Continue with: uwml train --resume logs/r\n"),
        (
            4,
            "Stopped after 7 steps, but the checkpoint could not be written, see above. "
            "To continue after step 4, where the last one is: uwml train --resume logs/r\n",
        ),
        (
            None,
            "Stopped after 7 steps, but the checkpoint could not be written, see above. "
            "The run cannot be continued.\n",
        ),
    ],
)
def test_a_stopped_run_says_what_it_can_be_continued_from(capsys, monkeypatch, saved, message):
    def stop(*_, **__):
        raise TrainingStopped(Path("logs/r"), 7, saved, 2)

    monkeypatch.setattr("uwml_core.training.run_training", stop)
    assert main(["train"]) == 130
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("port", ["0", "-1", "99999"])
@pytest.mark.parametrize("command", ["app", "demo"])
def test_a_port_that_is_none_is_one_line(capsys, command, port):
    assert main([command, f"--port={port}"]) == 2
    message = f"uwml: error: --port={port} is not a port; expected a number from 1 to 65535\n"
    assert capsys.readouterr().err == message


def broken_by_a_library(args):
    return int("x")


def broken_by_an_operator(args):
    first, second = (1, 2, 3)
    return first + second


@pytest.mark.parametrize("bug", [broken_by_a_library, broken_by_an_operator])
def test_a_bug_keeps_its_traceback(monkeypatch, bug):
    # compiled as if it stood in the package
    code = bug.__code__.replace(co_filename=str(command_line._PACKAGE / "bug.py"))
    module = SimpleNamespace(
        HELP="x", add_arguments=lambda parser: None, run=type(bug)(code, bug.__globals__)
    )
    monkeypatch.setattr(command_line.importlib, "import_module", lambda name: module)
    with pytest.raises(ValueError, match=r"invalid literal|too many values"):
        main(["train"])


def test_an_interrupt_before_the_run_begins_is_exit_code_130(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("uwml_core.training.run_training", interrupt)
    assert main(["train"]) == 130
    assert capsys.readouterr().err == "uwml: interrupted\n"


def test_help_loads_neither_torch_nor_streamlit():
    script = (
        "import sys; from uwml_core.__main__ import main\n"
        "try: main(['train', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'streamlit', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--resume RUN" in done.stdout


def test_no_command_is_an_error_of_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "demo" in capsys.readouterr().err


def test_losses_lists_every_preset_with_formula_and_source(capsys):
    assert main(["losses"]) == 0
    out = capsys.readouterr().out
    blocks = out.split("\n\n")
    assert [block.split(" (")[0] for block in blocks[:-1]] == list(LOSS_PRESETS)
    for block, preset in zip(blocks, LOSS_PRESETS.values(), strict=False):
        text = " ".join(block.split())
        assert preset.formula in text
        assert preset.reference in text
    assert all(len(line) <= 100 for line in out.splitlines())


def test_losses_needs_no_torch():
    code = "import sys; from uwml_core.__main__ import main; main(['losses']); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
