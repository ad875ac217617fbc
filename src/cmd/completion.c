/* flyball completion: scripts that complete commands, flags, kinds, scenarios, and names from the cluster.
 *
 * They run `flyball help` and `flyball COMMAND --help` at completion time, so there is no second
 * list of flags that could become outdated. In return, the layout of the help is an interface:
 * commands and kinds are indented by two spaces, and flags begin with two dashes. Names of objects
 * and namespaces come from kubectl, which gives up soon: a Tab key must not hang on a cluster that
 * is away. */
#include "cmd.h"

#include <stdio.h>

#define CLUSTER_NAMES "kubectl get --request-timeout=2s -o name "

static const char bash[] =
    "_flyball() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} words\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        words=$(flyball help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p')\n"
    "    elif [[ $word == -* ]]; then\n"
    "        words=$(flyball \"$command\" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)\n"
    "    elif [ \"$before\" = --testbed ]; then\n"
    "        words=\"$(flyball up --help | sed -n 's/^Scenarios://p') $(compgen -f -- \"$word\")\"\n"
    "    elif [ \"$before\" = -n ] || [ \"$before\" = --namespace ]; then\n"
    "        words=$(" CLUSTER_NAMES "namespaces 2>/dev/null | sed 's/.*\\///')\n"
    "    elif [[ $command == @(explain|get) ]] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
    "        words=$(flyball \"$command\" --help | sed -n 's/^  \\([a-z]*\\)[ ,].*/\\1/p')\n"
    "    elif [ \"$command\" = explain ] && [ \"$COMP_CWORD\" -eq 3 ]; then\n"
    "        words=$(" CLUSTER_NAMES "\"$before\" 2>/dev/null | sed 's/.*\\///')\n"
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
    "    local before=$words[CURRENT-1]\n"
    "    if (( CURRENT == 2 )); then\n"
    "        found=(${(f)\"$(flyball help | sed -n 's/^  \\([a-z]*\\)  *\\(.*\\)/\\1:\\2/p')\"})\n"
    "        _describe command found\n"
    "        return\n"
    "    elif [[ $PREFIX == -* ]]; then\n"
    "        found=(${(f)\"$(flyball $words[2] --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)\"})\n"
    "    elif [[ $before == --testbed ]]; then\n"
    "        found=(${=\"$(flyball up --help | sed -n 's/^Scenarios://p')\"})\n"
    "        _files\n"
    "    elif [[ $before == (-n|--namespace) ]]; then\n"
    "        found=(${(f)\"$(" CLUSTER_NAMES "namespaces 2>/dev/null | sed 's/.*\\///')\"})\n"
    "    elif [[ $words[2] == (explain|get) ]] && (( CURRENT == 3 )); then\n"
    "        found=(${(f)\"$(flyball $words[2] --help | sed -n 's/^  \\([a-z]*\\)[ ,].*/\\1/p')\"})\n"
    "    elif [[ $words[2] == explain ]] && (( CURRENT == 4 )); then\n"
    "        found=(${(f)\"$(" CLUSTER_NAMES "$before 2>/dev/null | sed 's/.*\\///')\"})\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "    compadd -- $found\n"
    "}\n"
    "compdef _flyball flyball\n";

static const char fish[] =
    "function __flyball_flags\n"
    "    set -l words (commandline -opc)\n"
    "    flyball $words[2] --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u\n"
    "end\n"
    "function __flyball_names\n"
    "    set -l words (commandline -opc)\n"
    "    test (count $words) -eq 3; and test $words[2] = explain\n"
    "    and " CLUSTER_NAMES "$words[3] 2>/dev/null | sed 's/.*\\///'\n"
    "end\n"
    "complete -c flyball -n __fish_use_subcommand -f -a \\\n"
    "    \"(flyball help | sed -n 's/^  \\([a-z]*\\)  *\\(.*\\)/\\1\\t\\2/p')\"\n"
    "complete -c flyball -n 'not __fish_use_subcommand' -a '(__flyball_flags)'\n"
    "complete -c flyball -n '__fish_prev_arg_in explain' -f -a \\\n"
    "    \"(flyball explain --help | sed -n 's/^  \\([a-z]*\\)[ ,].*/\\1/p')\"\n"
    "complete -c flyball -n '__fish_prev_arg_in get' -f -a variants\n"
    "complete -c flyball -n '__fish_seen_subcommand_from explain' -a '(__flyball_names)'\n"
    "complete -c flyball -n '__fish_prev_arg_in --testbed' -a \\\n"
    "    \"(flyball up --help | sed -n 's/^Scenarios: //p' | string split ' ')\"\n"
    "complete -c flyball -n '__fish_prev_arg_in -n --namespace' -f -a \\\n"
    "    \"(" CLUSTER_NAMES "namespaces 2>/dev/null | sed 's/.*\\///')\"\n";

static const struct {
    const char *shell, *script;
} scripts[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

static const char usage[] =
    "Usage: flyball completion bash|zsh|fish\n\n"
    "Prints a shell script that completes commands and flags. To load it:\n\n"
    "  bash   source <(flyball completion bash)\n"
    "  zsh    source <(flyball completion zsh)\n"
    "  fish   flyball completion fish | source\n";

/* Prints the script of a shell; an unknown shell is a usage error. */
int cmd_completion(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; argc == 2 && i < countof(scripts); i++)
        if (!strcmp(argv[1], scripts[i].shell))
            return fputs(scripts[i].script, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (argc == 2)
        fprintf(stderr, "flyball completion: unknown shell \"%s\"; must be bash, zsh or fish\n",
                argv[1]);
    else
        fputs("flyball completion: needs one argument: bash, zsh or fish\n", stderr);
    return EXIT_USAGE;
}
