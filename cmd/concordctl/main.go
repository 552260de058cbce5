// Command concordctl shows the state of a running cluster, from the cockpit of a member, and the
// data of a stopped member. docs/cockpit.md describes how to serve a cockpit.
//
//	concordctl status                    whether the cluster is whole, and its problems
//	concordctl watch                     events, until Ctrl-C
//	concordctl keys [PREFIX]             entries with type, size and last change
//	concordctl get KEY                   the value of an entry, if the member shows it
//	concordctl leases [NAME]             leases of the member; NAME: the record in the store
//	concordctl shards [TYPE]             shards of a type with state and home
//	concordctl release NAME TOKEN        ends the tenure of a lease with that token
//	concordctl move TYPE SHARD MEMBER    moves a shard to a member; any: withdraws that
//	concordctl forget MEMBER             removes a member from the count of majorities
//	concordctl rollout [URL...]          waits until the cluster may lose a member, as seen by these
//	concordctl bundle FILE [URL...]      what somebody else needs to help, of these members
//	concordctl store list|verify|export DIR
//	                                     the data of a stopped member
//	concordctl store import FILE DIR badger|bbolt
//	                                     a new directory from an export
//	concordctl completion bash           a script that completes commands and flags
//	concordctl help                      commands and flags
//
// Flags may precede or follow the arguments:
//
//	-at URL           cockpit, or host:port; default $CONCORD_COCKPIT, or http://127.0.0.1:7070
//	-config FILE      concord.yaml for bundle, which removes its secrets
//	-o table|json     output format
//	-timeout 10s      time limit of each request
//	-within 5m        time limit of rollout
//	-session NAME     session for leases and release; default: the only one, or leases
//	-replicator NAME  replicator for keys, get and forget; default: the only one
//	-force            forget without asking the others, after a majority has been lost for good;
//	                  only for members that have certainly stopped
//	-limit N          maximum number of items that keys, leases and shards list; 0: all.
//	                  Default 50
//
// The environment variable CONCORD_TOKEN is a bearer token for the cockpit. CONCORD_KEY is the key
// of an encrypted directory, in hexadecimal.
//
// Exit status:
//
//	0  success
//	1  success, but status found problems, store found damage, or rollout's time is over
//	2  invalid command line
//	3  no answer from the cockpit, or the outcome is unknown
//	4  rejected: not authorized, or not enabled in the cockpit
//	5  not found
//	6  nothing was done: another tenure holds the lease, or the request is invalid
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit statuses.
const (
	exitOK = iota
	exitWrong
	exitUsage
	exitSilent
	exitRefused
	exitNone
	exitInvalid
)

// failure is an error with an exit status.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

func fails(status int, format string, args ...any) error {
	return &failure{status, fmt.Errorf(format, args...)}
}

// options are the values of the flags.
type options struct {
	at, output, session, replicator, config string
	timeout, within                         time.Duration
	limit                                   int
	force                                   bool
}

// ctl is the state of one run of the program.
type ctl struct {
	options
	client
	out io.Writer
	key string // key of an encrypted directory, in hexadecimal
}

// command describes a command.
type command struct {
	name  string
	args  string // for the usage
	least int
	most  int
	about string
	run   func(ctx context.Context, c *ctl, args []string) error
}

func commands() []command {
	return []command{
		{"status", "", 0, 0, "whether the cluster is whole, and its problems", status},
		{"watch", "", 0, 0, "events, until Ctrl-C", watch},
		{"keys", "[PREFIX]", 0, 1, "entries with type, size and last change", keys},
		{"get", "KEY", 1, 1, "the value of an entry, if the member shows it", get},
		{"leases", "[NAME]", 0, 1, "leases of the member; NAME: the store's record", leases},
		{"shards", "[TYPE]", 0, 1, "shards of a type with state and home", shards},
		{"release", "NAME TOKEN", 2, 2, "ends the tenure of a lease with that token", release},
		{"move", "TYPE SHARD MEMBER", 3, 3, "moves a shard to a member; any: withdraws that", move},
		{"forget", "MEMBER", 1, 1, "removes a member from the count of majorities", forget},
		{"rollout", "[URL...]", 0, 100, "waits until the cluster may lose a member", rollout},
		{"bundle", "FILE [URL...]", 1, 100, "what somebody else needs to help, in a zip file",
			bundle},
		{"store", "list|verify|export DIR", 2, 4, "the data of a stopped member; import: see below",
			store},
		{"completion", "bash", 1, 1, "a script that completes commands and flags", completion},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is the testable part of main. It returns the exit status.
func run(ctx context.Context, args []string, env func(string) string, out, errs io.Writer) int {
	o, words, err := parse(args, env)
	asJSON := o.output == "json" || len(words) > 1 && words[0] == "store" && words[1] == "export"
	out, errs = &visible{out: out, json: asJSON}, &visible{out: errs}
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage())
		return exitOK
	}
	if err == nil {
		err = carryOut(ctx, o, words, env, out)
	}
	if err == nil {
		return exitOK
	}
	status := exitWrong
	if f, ok := errors.AsType[*failure](err); ok {
		status = f.status
	}
	fmt.Fprintf(errs, "concordctl: %v\n", err)
	if status == exitUsage {
		fmt.Fprintln(errs, "concordctl -help lists commands and flags")
	}
	return status
}

// flags returns a flag set that stores its values in o.
func flags(o *options, env func(string) string) *flag.FlagSet {
	at := env("CONCORD_COCKPIT")
	if at == "" {
		at = "http://127.0.0.1:7070"
	}
	f := flag.NewFlagSet("concordctl", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.at, "at", at, "`URL` or host:port")
	f.StringVar(&o.config, "config", "", "concord.yaml, for bundle, which removes its secrets")
	f.StringVar(&o.output, "o", "table", "output format: `table|json`")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "time limit of each request")
	f.DurationVar(&o.within, "within", 5*time.Minute, "time limit of rollout")
	f.StringVar(&o.session, "session", "", "session `name`; default: the only one, or leases")
	f.BoolVar(&o.force, "force", false, "forget without asking the others")
	f.StringVar(&o.replicator, "replicator", "", "replicator `name`; default: the only one")
	f.IntVar(&o.limit, "limit", 50, "maximum `number` of items to list; 0: all")
	return f
}

// parse separates flags from words, in any order.
func parse(args []string, env func(string) string) (o options, words []string, err error) {
	f := flags(&o, env)
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return o, nil, err
			}
			return o, nil, fails(exitUsage, "%w", err)
		}
		if f.NArg() == 0 {
			break
		}
		words, args = append(words, f.Arg(0)), f.Args()[1:]
	}
	switch {
	case len(words) == 1 && words[0] == "help":
		err = flag.ErrHelp
	case o.output != "table" && o.output != "json":
		err = fails(exitUsage, "-o is %q, must be table or json", o.output)
	case o.limit < 0:
		err = fails(exitUsage, "-limit is %d, must not be negative", o.limit)
	case o.timeout <= 0:
		err = fails(exitUsage, "-timeout is %v, must be positive", o.timeout)
	case o.within <= 0:
		err = fails(exitUsage, "-within is %v, must be positive", o.within)
	case len(words) == 0:
		err = fails(exitUsage, "no command")
	}
	return o, words, err
}

func carryOut(ctx context.Context, o options, words []string, env func(string) string,
	out io.Writer) error {
	for _, cmd := range commands() {
		if cmd.name != words[0] {
			continue
		}
		if n := len(words) - 1; n < cmd.least || n > cmd.most {
			return fails(exitUsage, "usage: concordctl %s",
				strings.TrimSpace(cmd.name+" "+cmd.args))
		}
		c := &ctl{options: o, out: out, key: env("CONCORD_KEY")}
		c.client = newClient(o, env("CONCORD_TOKEN"))
		return cmd.run(ctx, c, words[1:])
	}
	return fails(exitUsage, "unknown command %q", words[0])
}

func usage() string {
	var b strings.Builder
	b.WriteString("concordctl shows the state of a running cluster, from the cockpit of a member,\nand the data of a stopped member.\n\n")
	for _, cmd := range commands() {
		fmt.Fprintf(&b, "  %-29s %s\n", strings.TrimSpace(cmd.name+" "+cmd.args), cmd.about)
	}
	b.WriteString("\nconcordctl store import FILE DIR badger|bbolt makes a directory\nfrom an export.\n")
	b.WriteString("\nFlags, before or after the arguments:\n")
	f := flags(&options{}, func(string) string { return "" })
	f.VisitAll(func(fl *flag.Flag) {
		kind, about := flag.UnquoteUsage(fl)
		if fl.DefValue != "" {
			about += " (default " + fl.DefValue + ")"
		}
		fmt.Fprintf(&b, "  %-22s %s\n", strings.TrimSpace("-"+fl.Name+" "+kind), about)
	})
	b.WriteString("\nEnvironment: CONCORD_COCKPIT (default of -at), CONCORD_TOKEN (bearer token),\nCONCORD_KEY (key of an encrypted directory, in hexadecimal).\n\n")
	b.WriteString("Exit status: 0 success, 1 problems in the cluster or damage in the directory,\n2 invalid command line, 3 no answer, 4 rejected, 5 not found, 6 nothing done.\n")
	return b.String()
}
