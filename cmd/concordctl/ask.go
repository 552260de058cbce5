package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// status prints the overview of one member.
func status(ctx context.Context, c *ctl, _ []string) error {
	o, err := ask[api.Overview](ctx, c, "overview", nil)
	if err != nil {
		return err
	}
	var bad []string
	for _, p := range o.Problems {
		if p.Severity == "bad" {
			bad = append(bad, p.What)
		}
	}
	if c.output == "json" {
		err = printJSON(c.out, o)
	} else {
		c.overview(&o)
	}
	if err == nil && len(bad) > 0 {
		return fails(exitWrong, "%s: %s", plural(len(bad), "problem"),
			printable(strings.Join(bad, "; ")))
	}
	return err
}

func (c *ctl) overview(o *api.Overview) {
	whole := "is whole"
	switch {
	case o.Cluster.CutOff:
		whole = "has more members than this one sees: it is cut off"
	case len(o.Cluster.Split) > 0:
		whole = "is split"
	case len(o.Cluster.Lost) > 0:
		whole = "has missing members"
	}
	sentence := fmt.Sprintf("Cluster %s %s, as seen by %s.", o.Cluster.Name, whole, o.Cluster.Self)
	if o.Cluster.Self == "" {
		sentence = "The member is currently in no cluster."
	}
	wrap(c.out, "", "", sentence)
	for _, p := range o.Problems {
		wrap(c.out, "! ", "  ", p.What)
		wrap(c.out, "  → ", "    ", p.Do)
	}
	fmt.Fprintln(c.out)
	c.members(o)
	if len(o.Replicators) > 0 {
		fmt.Fprintln(c.out)
		var rows [][]string
		for _, r := range o.Replicators {
			lag := "-"
			if len(r.Lag) > 0 {
				lag = fmt.Sprint(r.Lag[0].Updates)
			}
			rows = append(rows, []string{r.Name, yes(r.Ready, "ready", "not ready"),
				fmt.Sprint(r.Members), fmt.Sprint(r.Counted), fmt.Sprint(r.Keys), lag,
				size(float64(r.LogBytes)), size(float64(r.SentBytes))})
		}
		table(c.out, []string{"+REPLICATOR", "STATE", "-MEMBERS", "-COUNTED", "-ENTRIES", "-LAG",
			"-LOG", "-SENT"}, rows)
	}
	if len(o.Sessions) > 0 {
		fmt.Fprintln(c.out)
		var rows [][]string
		for _, s := range o.Sessions {
			rows = append(rows, []string{s.Name, fmt.Sprint(s.Held), fmt.Sprint(s.NearExpiry),
				fmt.Sprint(s.Waiting), fmt.Sprint(total(s.Lost)), fmt.Sprint(s.Failures)})
		}
		table(c.out, []string{"+SESSION", "-HELD", "-NEAR EXPIRY", "-WAITING", "-LOST",
			"-FAILURES"}, rows)
	}
	if len(o.Singletons) > 0 {
		fmt.Fprintln(c.out)
		var rows [][]string
		for _, s := range o.Singletons {
			since := "-"
			if s.Since != nil {
				since = span(o.At.Sub(*s.Since))
			}
			rows = append(rows, []string{s.Name, s.State, s.Host, fmt.Sprint(s.Token), since})
		}
		table(c.out, []string{"+SINGLETON", "STATE", "HOST", "-TOKEN", "-FOR"}, rows)
	}
	for _, s := range o.Shards {
		fmt.Fprintln(c.out)
		var rows [][]string
		for _, h := range s.Homes {
			rows = append(rows, []string{s.Type, h.Address, fmt.Sprint(h.Shards)})
		}
		table(c.out, []string{"+TYPE", "HOME", "-SHARDS"}, rows)
	}
}

func (c *ctl) members(o *api.Overview) {
	says := map[string]string{}
	for _, p := range o.Peers {
		switch {
		case p.Error != "" || p.Self == "":
		case len(p.Members) == len(o.Cluster.Members):
			says[p.Self] = "same view"
		default:
			says[p.Self] = "sees " + plural(len(p.Members), "member")
		}
	}
	var rows [][]string
	for _, m := range o.Cluster.Members {
		state := "in view"
		if m.Self {
			state = "this one"
		}
		age := "-"
		if m.Rank > 0 {
			age = fmt.Sprint(m.Rank)
		}
		rows = append(rows, []string{m.Address, state, age, strings.Join(m.Roles, ","),
			says[m.Address]})
	}
	for _, a := range o.Cluster.Lost {
		rows = append(rows, []string{a, "MISSING", "-", "", says[a]})
	}
	slices.SortFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	table(c.out, []string{"+MEMBER", "STATE", "-AGE", "ROLES", "ITS VIEW"}, rows)
}

func yes(b bool, y, n string) string {
	if b {
		return y
	}
	return n
}

func total(m map[string]uint64) (n uint64) {
	for _, v := range m {
		n += v
	}
	return n
}

func (c *ctl) query(kv ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(kv); i += 2 {
		if kv[i+1] != "" {
			q.Set(kv[i], kv[i+1])
		}
	}
	return q
}

// list prints items. more reports that the list is incomplete.
func list[T any](c *ctl, items []T, more bool, heads []string, row func(T) []string) error {
	if c.output == "json" {
		return printJSON(c.out, items)
	}
	rows := [][]string{}
	for _, it := range items {
		rows = append(rows, row(it))
	}
	table(c.out, heads, rows)
	if more {
		fmt.Fprintf(c.out, "… and more; use -limit 0 to list all\n")
	}
	return nil
}

func keys(ctx context.Context, c *ctl, args []string) error {
	prefix := ""
	if len(args) > 0 {
		prefix = args[0]
	}
	items, more, err := pages[api.Key](ctx, c, "keys", c.query("replicator", c.replicator, "prefix",
		prefix))
	if err != nil {
		return err
	}
	return list(c, items, more, []string{"+NAME", "TYPE", "-ELEMENTS", "-SIZE", "-CHANGED"},
		func(k api.Key) []string {
			changed := "-"
			if k.Changed != nil {
				changed = k.Changed.Local().Format(time.TimeOnly)
			}
			return []string{k.Key, k.Type, fmt.Sprint(k.Atoms), size(float64(k.Bytes)), changed}
		})
}

func get(ctx context.Context, c *ctl, args []string) error {
	v, err := ask[api.Value](ctx, c, "value", c.query("replicator", c.replicator, "key", args[0]))
	if err != nil {
		return err
	}
	if c.output == "json" {
		return printJSON(c.out, v)
	}
	for line := range strings.SplitSeq(v.Text, "\n") {
		fmt.Fprintln(c.out, printable(line))
	}
	if v.Cut {
		fmt.Fprintln(c.out, "… truncated")
	}
	return nil
}

func leases(ctx context.Context, c *ctl, args []string) error {
	if len(args) > 0 {
		h, err := ask[api.Holder](ctx, c, "lease", c.query("session", c.chosen(ctx), "name",
			args[0]))
		if err != nil {
			return err
		}
		return list(c, []api.Holder{h}, false, []string{"+LEASE", "HOLDER", "-TOKEN",
			"-EXPIRES IN"}, func(h api.Holder) []string {
			left := "-"
			if h.Held {
				left = span(time.Duration(h.RemainingMS) * time.Millisecond)
			}
			return []string{h.Name, yes(h.Held, h.Owner, "none"), fmt.Sprint(h.Token),
				yes(h.Forever, "never", left)}
		})
	}
	items, more, err := pages[api.Lease](ctx, c, "leases", c.query("session", c.session))
	if err != nil {
		return err
	}
	return list(c, items, more, []string{"+LEASE", "STATE", "HOLDER", "-TOKEN", "-EXPIRES IN",
		"-WAITING"}, func(l api.Lease) []string {
		left := "-"
		if l.Expires != nil {
			left = span(time.Until(*l.Expires))
		}
		return []string{l.Name, l.State, yes(l.Owner != "", l.Owner, "-"), fmt.Sprint(l.Token),
			yes(l.Forever, "never", left), fmt.Sprint(l.Waiting)}
	})
}

// chosen returns the session that -session names. If it is not set, chosen returns the only
// session, or the one that the cockpit adds for the node.
func (c *ctl) chosen(ctx context.Context) string {
	if c.session != "" {
		return c.session
	}
	if all, err := ask[[]api.Session](ctx, c, "sessions", nil); err == nil && len(all) == 1 {
		return all[0].Name
	}
	return "leases"
}

func shards(ctx context.Context, c *ctl, args []string) error {
	kind := ""
	if len(args) > 0 {
		kind = args[0]
	}
	items, more, err := pages[api.Shard](ctx, c, "shards", c.query("type", kind))
	if err != nil {
		return err
	}
	err = list(c, items, more, []string{"-SHARD", "STATE HERE", "+HOME", "-FOR", "-TOKEN",
		"-ENTITIES", "-WAITING"}, func(s api.Shard) []string {
		home, since, token := s.Home, "-", "-"
		if home == "" {
			home = "none yet"
		}
		if s.Since != nil {
			since = span(time.Since(*s.Since))
		}
		if s.Token > 0 {
			token = fmt.Sprint(s.Token)
		}
		return []string{fmt.Sprint(s.Shard), strings.TrimSuffix(s.State, " the lease"), home, since,
			token, fmt.Sprint(s.Entities), fmt.Sprint(s.Waiting)}
	})
	if err != nil || c.output == "json" {
		return err
	}
	for _, s := range items {
		if s.Requested != "" && s.Requested != s.Home {
			wrap(c.out, "", "  ", fmt.Sprintf("Shard %d was requested to be on %s.", s.Shard,
				s.Requested))
		}
	}
	return nil
}

func release(ctx context.Context, c *ctl, args []string) error {
	token, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil || token == 0 {
		return fails(exitUsage,
			"token is %q, must be a number from 1; concordctl leases %s shows it", args[1], args[0])
	}
	done, err := act[map[string]any](ctx, c, "release", api.ReleaseAction{Session: c.chosen(ctx),
		Name: args[0], Token: token})
	if err != nil {
		return err
	}
	if c.output == "json" {
		return printJSON(c.out, done)
	}
	fmt.Fprintf(c.out, "The tenure with token %[2]d no longer holds lease %[1]s.\n",
		printable(args[0]), token)
	return nil
}

// anywhere is the argument that withdraws the request of a move.
const anywhere = "any"

func move(ctx context.Context, c *ctl, args []string) error {
	shard, err := strconv.Atoi(args[1])
	if err != nil || shard < 0 {
		return fails(exitUsage,
			"shard is %q, must be a number from 0; concordctl shards %s lists them", args[1],
			args[0])
	}
	to := args[2]
	if to == anywhere {
		to = ""
	}
	done, err := act[map[string]any](ctx, c, "move", api.MoveAction{Type: args[0],
		Shard: shard, To: to})
	if err != nil {
		return err
	}
	switch {
	case c.output == "json":
		return printJSON(c.out, done)
	case to == "":
		wrap(c.out, "", "", fmt.Sprintf("Shard %d of %s may run on any member again.", shard,
			args[0]))
	default:
		wrap(c.out, "", "", fmt.Sprintf(
			"Shard %d of %s will move to %s; concordctl shards %[2]s shows when it has.", shard,
			args[0], to))
	}
	return nil
}

func forget(ctx context.Context, c *ctl, args []string) error {
	replicator := c.replicator
	if replicator == "" {
		all, err := ask[[]api.Replicator](ctx, c, "replicators", nil)
		if err != nil {
			return err
		}
		if len(all) != 1 {
			return fails(exitUsage, "there are %d replicators; select one with -replicator",
				len(all))
		}
		replicator = all[0].Name
	}
	done, err := act[map[string]any](ctx, c, "forget", api.ForgetAction{Replicator: replicator,
		Member: args[0], Force: c.force})
	if err != nil {
		return err
	}
	if c.output == "json" {
		return printJSON(c.out, done)
	}
	fmt.Fprintf(c.out, "Replicator %[2]s no longer counts member %[1]s.\n", printable(args[0]),
		printable(replicator))
	return nil
}
