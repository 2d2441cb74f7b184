"""Runs the command line in this process."""

import json

from click.testing import CliRunner

from litert_torch.cli import main

HERE = "tests.cli.sample_models"


def litert_convert(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def succeeds(*args):
    result = litert_convert(*args)
    assert result.exit_code == 0, result.stderr
    return result


def reports(*args):
    return json.loads(succeeds(*args, "--json").stdout)


def fails(code, *args):
    """The one message on stderr of a command that ends with `code`."""
    result = litert_convert(*args)
    assert result.exit_code == code, (result.exit_code, result.output)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("error: ") == 1
    return result.stderr
