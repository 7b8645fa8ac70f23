"""`barnabas completion`: the script that completes commands, options, topics and groups in a shell."""

from __future__ import annotations

import click

_HOW = {
    "bash": 'eval "$(barnabas completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(barnabas completion zsh)"    in ~/.zshrc',
    "fish": "barnabas completion fish | source   in ~/.config/fish/config.fish",
}


@click.command(epilog="\b\n" + "\n".join(_HOW.values()))
@click.argument("shell", type=click.Choice(list(_HOW)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    complete_class = get_completion_class(shell)
    assert complete_class is not None
    root = context.find_root().command
    complete = complete_class(root, {}, "barnabas", "_BARNABAS_COMPLETE")
    # The script itself, not click's check of the installed bash, which would need to run one.
    click.echo(complete.source_template % complete.source_vars())
