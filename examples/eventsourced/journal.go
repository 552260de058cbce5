package main

import (
	"fmt"
	"sync"

	"github.com/asynkron/protoactor-go/persistence"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/sharding"
)

// snapshotEvery is the number of events from one snapshot to the next.
const snapshotEvery = 10

// journal has the events and the latest snapshot of each entity. It stands for a database.
type journal struct {
	rejected chan error // writes of former hosts

	mu      sync.Mutex
	streams map[string]*stream
	delayed *delay // the next write waits; nil: none does
}

type stream struct {
	token    coordination.Token // of the tenure that has replayed the stream last
	events   []proto.Message
	snapshot proto.Message // nil: none
	at       int           // number of events in snapshot
	replayed int           // number of events after the snapshot, at the last replay
}

type delay struct{ writing, proceed chan struct{} }

func newJournal() *journal {
	return &journal{rejected: make(chan error, 1), streams: map[string]*stream{}}
}

// fenced is the journal as one incarnation of an entity sees it. It ignores the names of actors.
type fenced struct {
	*journal
	entity sharding.Entity
}

// GetState implements persistence.Provider.
func (f *fenced) GetState() persistence.ProviderState { return f }

// GetSnapshotInterval implements persistence.ProviderState.
func (f *fenced) GetSnapshotInterval() int { return snapshotEvery }

// stream locks the journal, and returns the entity's stream.
func (f *fenced) stream() (s *stream, unlock func()) {
	f.mu.Lock()
	s = f.streams[f.entity.ID]
	if s == nil {
		s = &stream{}
		f.streams[f.entity.ID] = s
	}
	return s, f.mu.Unlock
}

// Restart precedes a replay. From here on no write of an earlier tenure is accepted, so the replay
// misses none. The interface has no errors. A panic ends this incarnation, and whatever it was
// asked is not answered.
func (f *fenced) Restart() {
	s, unlock := f.stream()
	defer unlock()
	if err := s.admit(f.entity); err != nil {
		panic(err)
	}
}

// admit compares tokens and stores the higher one. A database does this in the transaction of the
// write, as with fence.Table.
func (s *stream) admit(e sharding.Entity) error {
	if e.Token() < s.token {
		return &fence.StaleError{Resource: e.ID, Token: e.Token(), Highest: s.token}
	}
	s.token = e.Token()
	return nil
}

// PersistEvent implements persistence.EventStore.
func (f *fenced) PersistEvent(_ string, index int, event proto.Message) {
	f.wait()
	s, unlock := f.stream()
	defer unlock()
	if err := s.admit(f.entity); err != nil {
		f.rejected <- err
		panic(err)
	}
	if index != len(s.events) {
		panic(fmt.Errorf("event %d of %s after %d events", index, f.entity.ID, len(s.events)))
	}
	s.events = append(s.events, event)
}

// PersistSnapshot implements persistence.SnapshotStore.
func (f *fenced) PersistSnapshot(_ string, index int, snapshot proto.Message) {
	s, unlock := f.stream()
	defer unlock()
	if err := s.admit(f.entity); err != nil {
		panic(err)
	}
	s.snapshot, s.at = snapshot, index
}

// GetSnapshot implements persistence.SnapshotStore.
func (f *fenced) GetSnapshot(string) (snapshot any, index int, ok bool) {
	s, unlock := f.stream()
	defer unlock()
	s.replayed = 0
	if s.snapshot == nil {
		return nil, 0, false
	}
	return s.snapshot, s.at, true
}

// GetEvents implements persistence.EventStore.
func (f *fenced) GetEvents(_ string, start, _ int, replay func(any)) {
	s, unlock := f.stream()
	events := s.events[start:]
	s.replayed = len(events)
	unlock()
	for _, event := range events {
		replay(event)
	}
}

// DeleteEvents and DeleteSnapshots keep everything.
func (f *fenced) DeleteEvents(string, int) {}

// DeleteSnapshots implements persistence.SnapshotStore.
func (f *fenced) DeleteSnapshots(string, int) {}

// delayNext delays the next write, as a slow network does. writing is closed when the write is
// under way, and it arrives when the caller closes proceed.
func (j *journal) delayNext() (writing <-chan struct{}, proceed chan<- struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.delayed = &delay{make(chan struct{}), make(chan struct{})}
	return j.delayed.writing, j.delayed.proceed
}

func (j *journal) wait() {
	j.mu.Lock()
	d := j.delayed
	j.delayed = nil
	j.mu.Unlock()
	if d != nil {
		close(d.writing)
		<-d.proceed
	}
}

// replay describes the last replay of an entity.
func (j *journal) replay(id string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.streams[id]
	return fmt.Sprintf("a snapshot of %d deposits and %d events", s.at, s.replayed)
}

// check returns an error unless the events of an entity are the deposits 1 to n.
func (j *journal) check(id string, n int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	events := j.streams[id].events
	if len(events) != n {
		return fmt.Errorf("%d events of %s, want %d", len(events), id, n)
	}
	for i, event := range events {
		if want := say("deposited %d 5", i+1); !proto.Equal(event, want) {
			return fmt.Errorf("event %d of %s is %v, want %v", i, id, event, want)
		}
	}
	return nil
}
