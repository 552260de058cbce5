package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// pollEvery is the pause between two questions to the same cockpits.
const pollEvery = 500 * time.Millisecond

// rollout waits until the cluster may lose a member, as seen by the given cockpits, or by that of
// -at. All of them must say so twice in a row: a member that has just stopped or started is not in
// every view yet.
func rollout(ctx context.Context, c *ctl, urls []string) error {
	all := []client{c.client}
	if len(urls) > 0 {
		all = nil
		for _, url := range urls {
			o := c.options
			o.at = url
			all = append(all, newClient(o, c.token))
		}
	}
	limit := time.NewTimer(c.within)
	defer limit.Stop()
	whole := 0
	for {
		reasons, err := obstacles(ctx, c, all)
		if err != nil {
			return err
		}
		whole++
		if len(reasons) > 0 {
			whole = 0
		}
		if whole == 2 {
			fmt.Fprintln(c.out, "The cluster may lose a member.")
			return nil
		}
		select {
		case <-time.After(pollEvery):
			continue
		case <-ctx.Done():
			return fails(exitSilent, "interrupted")
		case <-limit.C:
		}
		if len(reasons) == 0 {
			reasons = []string{"all was well for less than " + pollEvery.String()}
		}
		return fails(exitWrong, "after %v the cluster may not lose a member:\n%s", c.within,
			strings.Join(reasons, "\n"))
	}
}

// obstacles returns the reasons why no member may stop, each after the address of the member that
// has it. The error is for a cockpit that will not answer later either.
func obstacles(ctx context.Context, c *ctl, all []client) (reasons []string, err error) {
	for _, one := range all {
		asked := *c
		asked.client = one
		o, err := ask[api.Overview](ctx, &asked, "overview", nil)
		if f, ok := errors.AsType[*failure](err); ok && f.status != exitSilent {
			return nil, err
		}
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		at := o.Cluster.Self
		if at == "" {
			at = one.named
		}
		for _, why := range obstaclesAt(&o) {
			reasons = append(reasons, printable(at+": "+why))
		}
	}
	return reasons, nil
}

// obstaclesAt returns the reasons that one member has.
func obstaclesAt(o *api.Overview) (why []string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if o.Health.Known && !o.Health.Ready {
		add("it is not ready: %s", strings.Join(o.Health.Why, "; "))
	}
	switch c := o.Cluster; {
	case c.Self == "":
		add("it is in no cluster")
	case c.CutOff:
		add("it is cut off from the other members")
	case len(c.Split) > 0:
		add("the cluster is split from %s", strings.Join(c.Split, ", "))
	case len(c.Lost) > 0:
		add("missing members: %s", strings.Join(c.Lost, ", "))
	}
	for _, p := range o.Peers {
		if p.Error != "" {
			add("the cockpit at %s does not answer: %s", p.URL, p.Error)
		}
	}
	for _, r := range o.Replicators {
		switch {
		case !r.Ready:
			add("replicator %s is not ready: %s", r.Name, r.NotReady)
		case len(r.Missing) > 0:
			add("replicator %s counts members that are not there: %s", r.Name,
				strings.Join(r.Missing, ", "))
		case r.Counted < r.Members:
			add("replicator %s counts %d of %d members: a new one is not filled yet", r.Name,
				r.Counted, r.Members)
		case r.Counted < 3:
			add("replicator %s counts %s: without one of them there is no majority", r.Name,
				plural(r.Counted, "member"))
		}
	}
	for _, s := range o.Singletons {
		if s.State == "unknown" {
			add("singleton %s has no host", s.Name)
		}
	}
	for _, s := range o.Shards {
		homeless := 0
		for _, home := range s.Map {
			if home < 0 || !slices.Contains(s.Hosts, s.Homes[home].Address) {
				homeless++
			}
		}
		if homeless > 0 {
			add("%s of %s without a home", plural(homeless, "shard"), s.Type)
		}
	}
	return why
}
