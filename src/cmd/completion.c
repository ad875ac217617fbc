/* flyball completion: scripts that complete commands and flags.
 *
 * They run `flyball help` and `flyball COMMAND --help` at completion time, so there is no second
 * list of flags that could become outdated. In return, the layout of the help is an interface:
 * commands and kinds are indented by two spaces, and flags begin with two dashes. */
#include "cmd.h"

#include <stdio.h>

static const char bash[] =
    "_flyball() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} words\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        words=$(flyball help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p')\n"
    "    elif [[ $word == -* ]]; then\n"
    "        words=$(flyball \"${COMP_WORDS[1]}\" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)\n"
    "    elif [ \"${COMP_WORDS[1]}\" = explain ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
    "        words=$(flyball explain --help | sed -n 's/^  \\([a-z]*\\)[ ,].*/\\1/p')\n"
    "    else\n"
    "        words=$(compgen -f -- \"$word\")\n"
    "    fi\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
    "}\n"
    "complete -o filenames -F _flyball flyball\n";

static const char zsh[] =
    "#compdef flyball\n"
    "_flyball() {\n"
    "    local -a found\n"
    "    if (( CURRENT == 2 )); then\n"
    "        found=(${(f)\"$(flyball help | sed -n 's/^  \\([a-z]*\\)  *\\(.*\\)/\\1:\\2/p')\"})\n"
    "        _describe command found\n"
    "    elif [[ $PREFIX == -* ]]; then\n"
    "        found=(${(f)\"$(flyball $words[2] --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)\"})\n"
    "        compadd -- $found\n"
    "    elif [[ $words[2] == explain ]] && (( CURRENT == 3 )); then\n"
    "        found=(${(f)\"$(flyball explain --help | sed -n 's/^  \\([a-z]*\\)[ ,].*/\\1/p')\"})\n"
    "        compadd -- $found\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "compdef _flyball flyball\n";

static const char fish[] =
    "function __flyball_flags\n"
    "    set -l words (commandline -opc)\n"
    "    flyball $words[2] --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u\n"
    "end\n"
    "complete -c flyball -n __fish_use_subcommand -f -a \\\n"
    "    \"(flyball help | sed -n 's/^  \\([a-z]*\\)  *\\(.*\\)/\\1\\t\\2/p')\"\n"
    "complete -c flyball -n 'not __fish_use_subcommand' -a '(__flyball_flags)'\n"
    "complete -c flyball -n '__fish_prev_arg_in explain' -f -a \\\n"
    "    \"(flyball explain --help | sed -n 's/^  \\([a-z]*\\)[ ,].*/\\1/p')\"\n";

static const struct {
    const char *shell, *script;
} scripts[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

static const char usage[] =
    "Usage: flyball completion bash|zsh|fish\n\n"
    "Prints a shell script that completes commands and flags. To load it:\n\n"
    "  bash   source <(flyball completion bash)\n"
    "  zsh    source <(flyball completion zsh)\n"
    "  fish   flyball completion fish | source\n";

int cmd_completion(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; argc == 2 && i < countof(scripts); i++)
        if (!strcmp(argv[1], scripts[i].shell))
            return fputs(scripts[i].script, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (argc > 1)
        fprintf(stderr, "flyball completion: unknown shell \"%s\"; must be bash, zsh or fish\n\n",
                argv[1]);
    fputs(usage, stderr);
    return EXIT_USAGE;
}
