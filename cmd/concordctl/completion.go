package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
)

// completion prints a completion script for a shell.
func completion(_ context.Context, c *ctl, args []string) error {
	if args[0] != "bash" {
		return fails(exitUsage, "no completion for shell %q; only bash is supported", args[0])
	}
	var names, options []string
	for _, cmd := range commands() {
		names = append(names, cmd.name)
	}
	flags(&c.options, func(string) string {
		return ""
	}).VisitAll(func(f *flag.Flag) { options = append(options, "-"+f.Name) })
	fmt.Fprintf(c.out, script, strings.Join(names, " "), strings.Join(options, " "))
	return nil
}

const script = `# eval "$(concordctl completion bash)"
_concordctl() {
    local -a words
    local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT} command= word before i
    read -ra words <<<"$line" # COMP_WORDS is also split at = and :
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[-1]} before=${words[-2]}
    for ((i = 1; i < ${#words[@]} - 1; i++)); do
        case ${words[i]} in
            -*=*) ;;
            -*) ((i++)) ;;
            *) command=${words[i]}; break ;;
        esac
    done
    COMPREPLY=()
    case $before in
        -o) mapfile -t COMPREPLY < <(compgen -W "table json" -- "$word"); return ;;
        -at|-timeout|-within|-session|-replicator|-limit) return ;;
        store) mapfile -t COMPREPLY < <(compgen -W "list verify export import" -- "$word"); return ;;
        completion) mapfile -t COMPREPLY < <(compgen -W "bash" -- "$word"); return ;;
        import) [[ $command == store ]] && mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
        list|verify|export) [[ $command == store ]] && mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
    esac
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "%[2]s" -- "$word")
    elif [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "%[1]s" -- "$word")
    fi
}
complete -F _concordctl concordctl
`
