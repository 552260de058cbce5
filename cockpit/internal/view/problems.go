package view

import (
	"fmt"
	"strings"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// Severities of problems.
const (
	Bad  = "bad"
	Warn = "warn"
)

// problems collects problems.
type problems []api.Problem

func (p *problems) add(severity, what, do string) {
	*p = append(*p, api.Problem{Severity: severity, What: Cut(what, maxText), Do: do})
}

// Problems returns the problems in an overview, each with what to do about it. Problems with
// severity Bad come first.
func Problems(o *api.Overview) []api.Problem {
	var p problems
	p.cluster(o.Cluster)
	p.peers(o)
	for _, r := range o.Replicators {
		p.replicator(r, o.Cluster.CutOff)
	}
	away := false
	for _, s := range o.Sessions {
		p.session(s)
		away = away || s.Failing
	}
	// What follows from a cut or from the lease store has the same remedy.
	follows := o.Cluster.CutOff || away
	for _, s := range o.Singletons {
		p.panics("singleton", s.Name, s.Panics)
		if s.State == "unknown" && o.Cluster.Self != "" && !follows {
			p.add(Warn, fmt.Sprintf("singleton %s has no known host", s.Name),
				"After a crash this lasts up to the TTL of the lease. If it lasts longer, check the lease store, and that a member with the role is running.")
		}
	}
	for _, s := range o.Shards {
		p.shards(s, follows)
	}
	if o.Health.Known && !o.Health.Live {
		p.add(Bad, "the member is not live: "+strings.Join(o.Health.Why, "; "),
			"Restart the process.")
	}
	out := []api.Problem{}
	for _, severity := range []string{Bad, Warn} {
		for _, q := range p {
			if q.Severity == severity {
				out = append(out, q)
			}
		}
	}
	return out
}

// CutOff reports whether the member of a view is cut off from the others: it sees less than half of
// the members, or half of them and must not host.
func CutOff(c api.Cluster) bool {
	here, lost := len(c.Members), len(c.Lost)
	return lost > here || lost > 0 && lost == here && !c.GateOpen
}

func (p *problems) cluster(c api.Cluster) {
	switch {
	case c.Removed != "":
		p.add(Bad, "this incarnation of the member has ended: "+c.Removed,
			"With node.Run the member rejoins automatically. Otherwise restart the process.")
	case c.Self == "":
		p.add(Warn, "the member is currently in no cluster",
			"It is starting, or rejoining the cluster. If this lasts, check its log and its cluster provider.")
	}
	if len(c.Split) > 0 {
		p.add(Bad, "the cluster is split: running members with a conflicting view: "+
			strings.Join(c.Split, ", "),
			"Repair the network. Once the members reach each other, some of them leave and rejoin automatically.")
	}
	if c.CutOff {
		why := ""
		if !c.GateOpen {
			why = "; singletons and shards do not run on it"
		}
		p.add(Bad, fmt.Sprintf("this member is cut off: it sees %d of %d members; missing: %s%s",
			len(c.Members), len(c.Members)+len(c.Lost), strings.Join(c.Lost, ", "), why),
			"Repair the network between this member and the others: it rejoins automatically. Look at a member of the other side. Forget nobody here: the others are likely to run.")
		return
	}
	if len(c.Lost) > 0 {
		p.add(Bad, "missing: "+strings.Join(c.Lost, ", "),
			"Restart the process, or repair the network. If the member will not return, forget it in each replicator.")
	}
	if !c.GateOpen && c.Self != "" {
		p.add(Warn, "singletons and shards must not run on this member: "+
			strings.Join(c.GateWhy, "; "),
			"Check the arbiter and guard leases, and the lease store.")
	}
}

// peers finds members whose view of the cluster differs.
func (p *problems) peers(o *api.Overview) {
	own := map[string]bool{}
	for _, m := range o.Cluster.Members {
		own[m.Address] = true
	}
	for _, q := range o.Peers {
		if q.Error != "" {
			continue // a member that has stopped is reported as missing
		}
		same := len(q.Members) == len(own)
		for _, m := range q.Members {
			same = same && own[m]
		}
		if !same && q.Self != "" {
			p.add(Warn, fmt.Sprintf("%s has a different view of the cluster: %s", q.Self,
				strings.Join(q.Members, ", ")),
				"Views differ briefly while members join and leave. If this lasts, repair the network between the two members.")
		}
	}
}

func (p *problems) replicator(r api.Replicator, cutOff bool) {
	broken := r.Durable != nil && r.Durable.Disk != "working" && r.Durable.Disk != "loading"
	switch {
	case r.NotReady == "" || cutOff || broken:
	case len(r.Missing) > 0:
		p.add(Warn, fmt.Sprintf("replicator %s is not ready: %s", r.Name, r.NotReady),
			"It may wait for data that only a missing member has: start that member. If it will not return, forget it; what only it had is lost.")
	default:
		p.add(Warn, fmt.Sprintf("replicator %s is not ready: %s", r.Name, r.NotReady),
			"It receives data from the members in view. If this lasts, look at their logs, and whether a member with durable data was forgotten or has not been started.")
	}
	if len(r.Missing) > 0 && !cutOff {
		p.add(Warn, fmt.Sprintf("members counted by replicator %s are not in view: %s", r.Name,
			strings.Join(r.Missing, ", ")),
			"Restart them. Forget members that will not return, so that majorities are counted without them.")
	}
	if n := r.Diverged + r.Corrupted; n > 0 {
		p.add(Bad, fmt.Sprintf(
			"replicator %s found diverged replicas or corrupted entries, %d times", r.Name, n),
			"Check the memory of the machines, and report the problem: see docs/operations.md.")
	}
	p.panics("replicator", r.Name, r.Panics)
	if r.Faults > 0 {
		p.add(Warn, fmt.Sprintf("functions of the application failed in replicator %s, %d times",
			r.Name, r.Faults), "The log of the node names the keys.")
	}
	if len(r.NearLimits) > 0 {
		p.add(Warn, fmt.Sprintf("replicator %s uses more than half of %s", r.Name,
			strings.Join(r.NearLimits, ", ")), "Raise the limit on all members, or write less.")
	}
	if r.Trouble != "" {
		p.add(Bad, fmt.Sprintf("the membership record of replicator %s has a problem: %s", r.Name,
			r.Trouble), "Check the store that keeps the record.")
	}
	if len(r.OtherDurable) > 0 {
		p.add(Bad, fmt.Sprintf("members configure different durable keys in replicator %s: %s",
			r.Name, strings.Join(r.OtherDurable, ", ")),
			"Configure the same durable keys on all members.")
	}
	if d := r.Durable; broken {
		p.add(Bad, fmt.Sprintf("the disk of replicator %s is %s: %s", r.Name, d.Disk, d.Error),
			"Free space or repair the disk. If the disk has failed, restart the member.")
	}
}

// panics reports the panics of the library in a component.
func (p *problems) panics(kind, name string, n uint64) {
	if n > 0 {
		p.add(Bad, fmt.Sprintf("a bug in the library interrupted %s %s, %d times", kind, name, n),
			"Report the problem with the log of the node.")
	}
}

func (p *problems) session(s api.Session) {
	p.panics("session", s.Name, s.Panics)
	if s.NearExpiry > 0 || s.Failing {
		held := "it holds no leases now"
		if s.Held > 0 {
			held = fmt.Sprintf("it holds %d leases, of which %d are near expiry", s.Held,
				s.NearExpiry)
		}
		p.add(Bad, fmt.Sprintf("the lease store does not answer session %s: %s", s.Name, held),
			"Start or repair the lease store, and the network to it. Singletons, shards and other work under leases stop before their leases end, and start again where the store answers.")
	}
}

func (p *problems) shards(s api.Shards, follows bool) {
	p.panics("sharding", s.Type, s.Panics)
	if n := s.States["stashing"]; n > 0 && !follows {
		p.add(Warn, fmt.Sprintf("messages wait for %d shards of %s without a known host", n,
			s.Type), "After a crash this lasts up to the TTL of the leases. If it lasts longer, check the lease store.")
	}
	if s.StoreFails {
		p.add(Bad, fmt.Sprintf("the store of remembered entities of %s fails at this member",
			s.Type), "Repair the store, and the network to it. The shards move to members where calls succeed, if there are any.")
	}
	if s.Failed > 0 {
		p.add(Warn, fmt.Sprintf("%d entities of %s could not be created, or panicked too often",
			s.Failed, s.Type), "The log of the node names them.")
	}
}
