package clustertest

import (
	"strings"
	"time"

	"github.com/concord-go/concord/internal/ports"
)

var serverChecks = []check{
	{"P9", outage},
	{"P14", unreachable},
	{"P17", silent},
}

// outage stops the server under otherwise undisturbed members.
func outage(e *env) {
	all := e.cluster(3)
	e.config.Server.Stop(e)
	stopped := true
	e.Cleanup(func() {
		if stopped {
			e.config.Server.Start(e)
		}
	})
	e.keeps(e.config.Server.Outage, all)
	e.config.Server.Start(e)
	stopped = false
	e.keeps(e.config.KeptFor, all) // entries that expired meanwhile would show by then
	late := all[0].member
	free := ports.Free(e, 2)
	late.Index, late.Port, late.Spare = len(all), free[0], append(late.Spare, free[1])
	added := e.launch(late).start()
	e.agree(e.config.ListedWithin, all[0], all[1], all[2], added)
	all[1].kill()
	e.agree(e.config.DroppedWithin, all[0], all[2], added)
}

// silent lets the connections of one member to the server fall silent.
func silent(e *env) {
	var all []*process
	for _, m := range e.places(3) {
		all = append(all, e.launch(m))
	}
	all[0].start()
	e.agree(e.config.ListedWithin, all[0])
	silence := e.config.Server.Silence(e)
	e.startAll(all[1:])
	e.agree(e.config.ListedWithin, all...)
	silence()
	e.keeps(e.config.KeptFor, all)
	late := all[0].member
	free := ports.Free(e, 2)
	late.Index, late.Port, late.Spare = len(all), free[0], append(late.Spare, free[1])
	added := e.launch(late).start()
	e.agree(e.config.KeptFor, all[0], all[1], all[2], added)
}

// keeps fails if the members of a cluster stop agreeing within the given time.
func (e *env) keeps(during time.Duration, clusters ...[]*process) {
	e.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(poll) {
		for _, all := range clusters {
			if d := disagreement(all); d != "" {
				e.Fatalf("%s: members agree no more: %s", e.rule, d)
			}
		}
	}
}

// unreachable starts a member without the server, and again with it.
func unreachable(e *env) {
	p := e.launch(e.places(1)[0])
	e.config.Server.Stop(e)
	r := p.tell(cmdStart, evStarted, evFailed)
	e.config.Server.Start(e)
	if r.Event != evFailed {
		e.Fatalf("P14: a member starts without the server")
	}
	if !strings.Contains(r.Text, e.config.Server.Name) {
		e.Errorf("P14: the error does not name %q: %s", e.config.Server.Name, r.Text)
	}
	e.Logf("the error is: %s", r.Text)
	p.start()
	e.agree(e.config.ListedWithin, p)
}
