"""The command line in this process."""

from click.testing import CliRunner, Result

from calviz.cli import main


def run(*arguments: object) -> Result:
    """Return what `calviz` does with the arguments: exit code, standard output, standard error."""
    return CliRunner().invoke(main, [str(a) for a in arguments])


def run_successfully(*arguments: object) -> str:
    """Return the standard output of a command that must succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def outcome(*arguments: object) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error."""
    result = run(*arguments)
    return result.exit_code, result.stdout, result.stderr
