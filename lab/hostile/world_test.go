package hostile_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/testkit/pki"
)

// patience bounds the wait for every expected event, however busy the machine is.
const patience = time.Minute

const size = 3

// Modes of the members.
const (
	plainMode  = "plain"
	secretMode = "secret"
	tlsMode    = "tls"
)

// world is a cluster under attack.
type world struct {
	t         *testing.T
	mode      string
	cluster   string // its name
	dir       string
	members   [size]*process
	instances string
	apart     bool           // each member has files of its own
	ca        *pki.Authority // nil without TLS
	before    [size]status
}

// process is a member as seen by the driver.
type process struct {
	*child.Process
	address string
	spec    spec
	answers chan status
	asked   int
}

// newWorld starts three members and waits until they form one cluster.
func newWorld(t *testing.T, mode string) *world {
	return newCluster(t, &world{mode: mode, cluster: "hostile", dir: t.TempDir()}, nil)
}

// newCluster starts the members of w. Others reach each of them through the address that via
// returns, or directly if via is nil.
func newCluster(t *testing.T, w *world, via func(address string) string) *world {
	w.t, w.instances = t, filepath.Join(w.dir, "instances-"+w.cluster)
	free := ports.Free(t, 2*size)
	var healths []string
	for i := range size {
		healths = append(healths, fmt.Sprintf("127.0.0.1:%d", free[size+i]))
	}
	for i := range size {
		s := spec{
			Cluster: w.cluster, Port: free[i], Health: free[size+i], Healths: healths,
			LeaseDir:  filepath.Join(w.dir, "leases-"+w.cluster),
			Instances: w.instances,
		}
		address := fmt.Sprintf("127.0.0.1:%d", s.Port)
		if via != nil {
			address = via(address)
			s.Advertised = address
		}
		dir := w.dir
		if w.apart {
			dir = filepath.Join(dir, fmt.Sprint(s.Port))
			require.NoError(t, os.Mkdir(dir, 0o700))
		}
		w.identify(dir, address, &s)
		w.members[i] = w.launch(s, address)
	}
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if err = w.well(); err == nil {
			break
		}
	}
	require.NoError(t, err)
	w.rest()
	return w
}

// identify gives a member the identity that its mode needs.
func (w *world) identify(dir, address string, s *spec) {
	switch w.mode {
	case secretMode:
		s.Secret = filepath.Join(dir, "secret")
		if _, err := os.Stat(s.Secret); err == nil {
			return // shared by all members
		}
		require.NoError(w.t, os.WriteFile(s.Secret, []byte("the secret of this cluster\n"), 0o600))
	case tlsMode:
		if w.ca == nil {
			var err error
			w.ca, err = pki.NewAuthority("hostile")
			require.NoError(w.t, err)
		}
		authority, err := w.ca.Write(dir)
		require.NoError(w.t, err)
		cert, key, err := w.ca.WriteMember(dir, fmt.Sprint(s.Port), pki.Member{
			Hosts: []string{"127.0.0.1"}, Addresses: []string{address},
		})
		require.NoError(w.t, err)
		s.TLS = node.TLSFiles(cert, key, authority)
	}
}

func (w *world) launch(s spec, address string) *process {
	raw, err := json.Marshal(s)
	require.NoError(w.t, err)
	p := &process{address: address, spec: s, answers: make(chan status, 16)}
	p.Process = child.Start(w.t, []string{memberEnv + "=" + string(raw), "GOMAXPROCS=2"},
		func(line []byte) {
			var s status
			if json.Unmarshal(line, &s) == nil {
				p.answers <- s
			}
		})
	w.t.Cleanup(func() {
		p.Hangup() // the member stops
		select {
		case <-p.Gone():
		case <-time.After(patience):
		}
	})
	return p
}

// status queries the status of a member.
func (p *process) status() (status, error) { return p.say("status") }

// say gives a member a command, and returns its answer.
func (p *process) say(command string) (status, error) {
	p.asked++
	if err := p.Say(command); err != nil {
		return status{}, fmt.Errorf("member at %s is gone: %w", p.address, err)
	}
	timeout := time.After(patience)
	for {
		select {
		case s := <-p.answers:
			if s.N == p.asked {
				return s, nil
			}
		case <-p.Gone():
			return status{}, fmt.Errorf("member at %s is gone", p.address)
		case <-timeout:
			return status{}, fmt.Errorf("member at %s does not answer", p.address)
		}
	}
}

// well returns an error that describes a problem of the members, or nil.
func (w *world) well() error {
	host := ""
	for _, p := range w.members {
		s, err := p.status()
		switch {
		case err != nil:
			return err
		case s.Ordinal != 1:
			return fmt.Errorf("member at %s is in incarnation %d", p.address, s.Ordinal)
		case len(s.IDs) != size:
			return fmt.Errorf("member at %s sees %v", p.address, s.IDs)
		case s.Added != "":
			return fmt.Errorf("an update at %s: %s", p.address, s.Added)
		case s.Host == "" || host != "" && s.Host != host:
			return fmt.Errorf("member at %s finds the singleton at %q, another at %q", p.address,
				s.Host, host)
		case s.DoorStarted != 1:
			return fmt.Errorf("the actor at %s was started %d times", p.address, s.DoorStarted)
		case len(s.Failures) > 0:
			return fmt.Errorf("actors at %s have failed: %q", p.address, s.Failures)
		case s.Asked != "":
			return fmt.Errorf("a question of %s to the singleton: %s", p.address, s.Asked)
		case s.Grain == "":
			return fmt.Errorf("the virtual actor is not found from %s", p.address)
		}
		host = s.Host
	}
	return w.oneInstance()
}

// oneInstance checks the records of the instances: never two at a time, one now, under one tenure.
func (w *world) oneInstance() error {
	data, err := os.ReadFile(w.instances)
	if err != nil {
		return err
	}
	running := 0
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "start") {
			running++
		} else {
			running--
		}
		if running > 1 {
			return fmt.Errorf("two instances at a time:\n%s", data)
		}
	}
	if running != 1 {
		return fmt.Errorf("%d instances:\n%s", running, data)
	}
	return nil
}

// rest records the state of the members between attacks.
func (w *world) rest() {
	for i, p := range w.members {
		s, err := p.status()
		require.NoError(w.t, err)
		w.before[i] = s
	}
}

// Bounds for what an attack may leave behind: connections that close by themselves within a minute.
const (
	goroutinesLeft = 600
	heapLeft       = 96 << 20
)

// unharmed waits until the members are in the same state as before the attack.
func (w *world) unharmed(t *testing.T) {
	t.Helper()
	starts := w.starts()
	var err error
	for deadline := time.Now().Add(2 * patience); time.Now().Before(deadline); time.Sleep(
		100 * time.Millisecond) {
		if err = w.well(); err == nil {
			err = w.asBefore()
		}
		if err == nil {
			break
		}
	}
	require.NoError(t, err)
	require.Equal(t, starts, w.starts(), "no instance was started")
}

// staysUnharmed checks the members for the TTL of a lease that is no longer renewed, which is
// longer than an expulsion takes.
func (w *world) staysUnharmed(t *testing.T) {
	t.Helper()
	for until := time.Now().Add(leases.TTL); time.Now().Before(until); time.Sleep(
		200 * time.Millisecond) {
		w.unharmed(t)
	}
}

func (w *world) starts() int {
	data, err := os.ReadFile(w.instances)
	require.NoError(w.t, err)
	return strings.Count(string(data), "start")
}

func (w *world) asBefore() error {
	for i, p := range w.members {
		s, err := p.status()
		was := w.before[i]
		switch {
		case err != nil:
			return err
		case s.Self != was.Self || s.Incarnation != was.Incarnation:
			return fmt.Errorf("member at %s was %s and is %s", p.address, was.Self, s.Self)
		case fmt.Sprint(s.IDs) != fmt.Sprint(was.IDs):
			return fmt.Errorf("member at %s saw %v and sees %v", p.address, was.IDs, s.IDs)
		case s.Sum < was.Sum:
			return fmt.Errorf("the counter at %s was %d and is %d", p.address, was.Sum, s.Sum)
		case s.Host != was.Host:
			return fmt.Errorf("the singleton was at %s and is at %s", was.Host, s.Host)
		case s.Grain != was.Grain:
			return fmt.Errorf("the virtual actor was %s and is %s", was.Grain, s.Grain)
		case s.Goroutines > was.Goroutines+goroutinesLeft:
			return fmt.Errorf("member at %s had %d goroutines and has %d", p.address,
				was.Goroutines, s.Goroutines)
		case s.Heap > was.Heap+heapLeft:
			return fmt.Errorf("member at %s had %d MB and has %d", p.address, was.Heap>>20,
				s.Heap>>20)
		}
	}
	return nil
}

// victim returns the member under attack, which hosts the singleton.
func (w *world) victim() *process {
	for _, p := range w.members {
		if p.address == w.before[0].Host {
			return p
		}
	}
	return w.members[0]
}

// bystander returns another member, in whose name the stranger speaks.
func (w *world) bystander() (*process, status) {
	for i, p := range w.members {
		if p != w.victim() {
			return p, w.before[i]
		}
	}
	panic("there are three")
}
