package clustertest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

var checks = []check{
	{"P1", func(e *env) { e.cluster(1) }},
	{"P2", func(e *env) { e.cluster(3) }},
	{"P3", kindsArrive},
	{"P4", newIDs},
	{"P5", killed},
	{"P6", left},
	{"P7", restarted},
	{"P8", livesAgain},
	{"P10", portTaken},
	{"P11", leaves},
	{"P12", names},
	{"P13", quiet},
	{"P16", paused},
}

func kindsArrive(e *env) {
	all := e.cluster(2)
	for _, p := range all {
		for _, q := range all {
			m, _ := p.at(q.member.Address())
			if kind := "role." + q.member.role(); !slices.Contains(m.Kinds, kind) {
				e.Errorf("P3: member %d lists member %d with kinds %q, without %q", p.member.Index,
					q.member.Index, m.Kinds, kind)
			}
		}
	}
}

// newIDs looks only at the member itself: P7 and P8 check whether others list it again.
func newIDs(e *env) {
	m := e.places(1)[0]
	p := e.launch(m).start()
	ids := []string{e.ownID(p)}
	p.stop()
	ids = append(ids, e.ownID(p.start()))
	p.kill()
	ids = append(ids, e.ownID(e.launch(m).start()))
	if ids[0] == ids[1] {
		e.Errorf("P4: the second incarnation in one process has the id of the first, %q", ids[0])
	}
	if ids[1] == ids[2] {
		e.Errorf("P4: another process at the same address has the same id, %q", ids[1])
	}
}

func (e *env) ownID(p *process) string {
	e.Helper()
	e.eventually(e.config.ListedWithin, func() bool {
		return p.id() != ""
	}, "member does not list itself")
	return p.id()
}

func killed(e *env) {
	all := e.cluster(3)
	began := time.Now()
	all[1].kill()
	e.agree(e.config.DroppedWithin, all[0], all[2])
	e.Logf("dropped after %v", time.Since(began).Round(time.Millisecond))
}

func left(e *env) {
	all := e.cluster(3)
	began := time.Now()
	all[1].stop()
	e.agree(e.config.LeftWithin, all[0], all[2])
	e.Logf("dropped %v after the stop began", time.Since(began).Round(time.Millisecond))
}

func restarted(e *env) {
	all := e.cluster(2)
	first := all[1].member

	all[1].kill()
	e.agree(e.config.DroppedWithin, all[0])
	again := e.launch(first).start()
	e.agree(e.config.ListedWithin, all[0], again)

	again.kill() // no member has time to notice
	began := time.Now()
	again = e.launch(first).start()
	e.agree(e.config.ListedWithin+e.config.DroppedWithin, all[0], again)
	e.Logf("listed again %v after the death", time.Since(began).Round(time.Millisecond))

	again.stop()
	e.agree(e.config.LeftWithin, all[0])
	e.agree(e.config.ListedWithin, all[0], e.launch(first).start())
}

func livesAgain(e *env) {
	all := e.cluster(2)
	for range 2 {
		all[1].stop()
		all[1].start() // at once: the other may not have noticed
		e.agree(e.config.ListedWithin+e.config.LeftWithin, all...)
	}
	all[1].stop()
	e.agree(e.config.LeftWithin, all[0])
	all[1].start()
	e.agree(e.config.ListedWithin, all...)
}

func portTaken(e *env) {
	m := e.places(1)[0]
	ports := []int{m.Port}
	if e.config.Listens {
		ports = append(ports, m.Spare[m.Index])
	}
	p := e.launch(m)
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(m.Host, strconv.Itoa(port)))
		e.must(err)
		r := p.tell(cmdStart, evStarted, evFailed)
		e.must(l.Close())
		if r.Event == evStarted {
			e.Fatalf("P10: a member starts although port %d is taken", port)
		}
		if !strings.Contains(r.Text, strconv.Itoa(port)) {
			e.Errorf("P10: the error does not name port %d: %s", port, r.Text)
		}
	}
	p.start()
	e.agree(e.config.ListedWithin, p)
}

// leaves compares incarnations of one process. The first incarnations start what belongs to the
// process.
func leaves(e *env) {
	const warm, incarnations = 2, 4
	all := e.cluster(2)
	var before report
	for i := range warm + incarnations {
		if i > 0 {
			all[1].start()
		}
		e.agree(e.config.ListedWithin+e.config.LeftWithin, all...)
		if all[1].stop(); i == warm-1 {
			before = all[1].tell(cmdCount, evCounted)
		}
	}
	e.compare(before, all[1], incarnations)
}

// compare counts repeatedly for up to LeftWithin, since goroutines of an incarnation may outlast
// it.
func (e *env) compare(before report, p *process, incarnations int) {
	var after report
	var has int
	had := len(before.Goroutines)
	for deadline := time.Now().Add(e.config.LeftWithin); ; {
		after = p.tell(cmdCount, evCounted)
		has = len(after.Goroutines)
		ended := has-had <= incarnations*e.config.Leaks.Goroutines &&
			after.Files-before.Files <= incarnations*e.config.Leaks.Files
		if ended || time.Now().After(deadline) {
			break
		}
	}
	e.Logf("%d incarnations: goroutines from %d to %d, files from %d to %d", incarnations,
		had, has, before.Files, after.Files)
	if has-had > incarnations*e.config.Leaks.Goroutines {
		e.Errorf("P11: %d incarnations leave %d goroutines behind, %d allowed:\n%s",
			incarnations, has-had, incarnations*e.config.Leaks.Goroutines,
			strings.Join(after.Goroutines, "\n\n"))
	}
	if grown := after.Files - before.Files; grown > incarnations*e.config.Leaks.Files {
		e.Errorf("P11: %d incarnations leave %d open files behind, %d allowed", incarnations, grown,
			incarnations*e.config.Leaks.Files)
	}
}

// names runs two clusters; the name of one is a prefix of the other's. Both know the ports of all.
func names(e *env) {
	places := e.places(4)
	var one, two []*process
	for i, m := range places {
		if i%2 == 1 {
			m.Cluster += "2"
			two = append(two, e.launch(m))
			continue
		}
		one = append(one, e.launch(m))
	}
	e.startAll(append(slices.Clone(one), two...))
	e.agree(e.config.ListedWithin, one...)
	e.agree(e.config.ListedWithin, two...)
	e.keeps(mixing, one, two)
}

// mixing is how long two complete clusters get to see each other.
const mixing = 2 * time.Second

func quiet(e *env) {
	all := e.cluster(2)
	for _, p := range all {
		p.stop()
	}
	for _, p := range all {
		for _, r := range p.reports(evError) {
			e.Errorf("P13: member %d logs an error: %s", p.member.Index, r.Text)
		}
	}
}

func paused(e *env) {
	all := e.cluster(3)
	var ids []string
	for _, p := range all {
		ids = append(ids, p.id())
		e.must(p.freeze())
	}
	time.Sleep(e.config.Pause) // the processes have no other clock
	for _, p := range all {
		e.must(p.thaw())
	}
	e.keeps(e.config.KeptFor, all)
	for i, p := range all {
		if p.id() != ids[i] {
			e.Errorf("P16: member %d was %q before the pause, and is %q now", i, ids[i], p.id())
		}
	}
}
