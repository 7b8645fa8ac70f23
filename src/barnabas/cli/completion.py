"""`barnabas completion`: the script that completes commands, options, topics and groups in a shell.

It also has the function `barnabas_profile`, which prints the profile in use, for the shell's prompt. The function reads the file of
`profiles` by itself: a prompt should not wait for a Python process.
"""

from __future__ import annotations

import click

_HOW = {
    "bash": 'eval "$(barnabas completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(barnabas completion zsh)"    in ~/.zshrc',
    "fish": "barnabas completion fish | source   in ~/.config/fish/config.fish",
}

_POSIX_PROFILE = """
barnabas_profile() {
    if [ -n "$BARNABAS_PROFILE" ]; then
        printf '%s' "$BARNABAS_PROFILE"
    elif [ -z "$BARNABAS_BOOTSTRAP_SERVERS" ]; then
        sed -n 's/^default = "\\(.*\\)"$/\\1/p' "${XDG_CONFIG_HOME:-$HOME/.config}/barnabas/profiles.toml" 2>/dev/null
    fi
}
"""
_FISH_PROFILE = """
function barnabas_profile
    if test -n "$BARNABAS_PROFILE"
        printf '%s' "$BARNABAS_PROFILE"
    else if test -z "$BARNABAS_BOOTSTRAP_SERVERS"
        set -l folder "$XDG_CONFIG_HOME"
        test -n "$folder"; or set folder "$HOME/.config"
        sed -n 's/^default = "\\(.*\\)"$/\\1/p' "$folder/barnabas/profiles.toml" 2>/dev/null
    end
end
"""


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
    click.echo(_FISH_PROFILE if shell == "fish" else _POSIX_PROFILE)
