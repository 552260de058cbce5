package zookeeper

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
)

// write is one Swap. The request that writes the record also creates or removes the holder's place:
// a place of this module exists if and only if the record names its tenure. So a session that dies
// in between leaves no place behind that locks of other programs would wait for.
type write struct {
	s     *store
	conn  *zk.Conn
	name  string
	path  string
	was   mark
	next  leasestore.Record
	value []byte
	bound string // place of the session record that next is held through, or ""
}

func (w *write) at(name string) string { return w.path + "/" + name }

func (w *write) set() *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: w.path, Data: w.value, Version: w.was.data}
}

func check(path string) *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: path, Version: -1}
}

func remove(path string) *zk.DeleteRequest { return &zk.DeleteRequest{Path: path, Version: -1} }

// do sends ops and the write of the record in one transaction, on condition that the session record
// that next is held through has its place. It returns the resulting state of the node.
func (w *write) do(ops ...any) (*zk.Stat, error) {
	var first []any
	if w.bound != "" {
		first = append(first, check(w.bound))
	}
	answer, err := w.conn.Multi(append(append(first, ops...), w.set())...)
	switch {
	case err == nil:
		return answer[len(answer)-1].Stat, nil
	case w.bound != "" && len(answer) > 0 && errors.Is(answer[0].Error, zk.ErrNoNode):
		return nil, errSessionOver
	}
	return nil, err
}

// create creates the node of a lease.
func (w *write) create() (leasestore.Version, error) {
	place, ops := w.place(0)
	ops = append([]any{&zk.CreateRequest{Path: w.path, Acl: w.s.cfg.ACL}}, ops...)
	stat, err := w.do(ops...)
	if errors.Is(err, zk.ErrNoNode) {
		if err := w.s.makeAbove(w.path); err != nil {
			return "", err
		}
		stat, err = w.do(ops...)
	}
	if err != nil {
		return "", err
	}
	return w.version(stat, place), nil
}

// makeAbove creates the nodes above one.
func (s *store) makeAbove(at string) error {
	for i, c := range at {
		if c != '/' || i == 0 {
			continue
		}
		if _, err := s.link.ZK().Create(at[:i], nil, 0, s.cfg.ACL); err != nil &&
			!errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("%w: zookeeper: node %.200q: %w", leasestore.ErrRefused, at[:i], err)
		}
	}
	return nil
}

// place returns operations that create the next place, if the node has had as many places as had.
// With any other number ZooKeeper creates another name than the one that the operations check. For
// a blank record the operations remove the place again.
func (w *write) place(had uint32) (name string, ops []any) {
	prefix := prefixOf(tagOf(w.next.Nonce), w.s.newMaker())
	name = numbered(prefix, had)
	flags := int32(zk.FlagEphemeral | zk.FlagSequence)
	if w.next.Forever {
		flags = zk.FlagSequence
	}
	enter := &zk.CreateRequest{Path: w.at(prefix), Data: []byte(w.next.Owner), Acl: w.s.cfg.ACL,
		Flags: flags}
	if w.next.Nonce == "" {
		return "", []any{enter, remove(w.at(name))}
	}
	return name, []any{enter, check(w.at(name))}
}

// version returns the version of what was written, with its place. If another program is in line
// for a free lease, no write can be conditional on that version: no write may depend on the state
// before that tenure.
func (w *write) version(s *zk.Stat, place string) leasestore.Version {
	w.s.sessions.learn(w.name, w.next, w.at(place))
	switch {
	case w.next.Nonce != "":
		return heldBy(s, w.next.Token, place)
	case s.NumChildren > 0:
		return locked(s)
	}
	return free(s)
}

// replace writes over a record.
func (w *write) replace() (leasestore.Version, error) {
	switch {
	case w.was.holder == "":
		return w.enter()
	case w.next.Nonce == "":
		return w.leave()
	case w.was.token == w.next.Token && strings.HasPrefix(w.was.holder, "concord-"+
		tagOf(w.next.Nonce)+"-"):
		return w.renew()
	}
	return w.takeOver()
}

func (w *write) renew() (leasestore.Version, error) {
	stat, err := w.do(check(w.at(w.was.holder)))
	if err != nil {
		return "", err
	}
	return w.version(stat, w.was.holder), nil
}

// leave frees the lease and wakes the next in line.
func (w *write) leave() (leasestore.Version, error) {
	stat, err := w.do(remove(w.at(w.was.holder)))
	if err != nil {
		return "", err
	}
	return w.version(stat, ""), nil
}

// enter writes over a blank record, if no other place has been in line since the record was read.
func (w *write) enter() (leasestore.Version, error) {
	place, ops := w.place(w.was.had)
	stat, err := w.do(ops...)
	switch {
	case err != nil:
		return "", err
	case stat.Czxid != w.was.created:
		return "", w.undo(stat, place)
	}
	return w.version(stat, place), nil
}

// undo reverts a write on another node, which was created after the node that was read was deleted,
// and which has had as many writes and places. When that is done, the result is a conflict.
func (w *write) undo(s *zk.Stat, place string) error {
	if place == "" {
		return leasestore.ErrConflict // blank over blank
	}
	w.was.data, w.was.holder = s.Version, place
	err := w.yield()
	if errors.Is(outcome(err), leasestore.ErrRefused) { // but the first write was made
		return fmt.Errorf("a write on another node is not reverted: %v", err) //nolint:errorlint // not refused
	}
	return err
}

// takeOver writes over the record of an overdue holder. If locks of other programs wait behind the
// holder, the result is a conflict and they get the lock: nothing else would free it for them. The
// holder was alone in line, so if no place was made after its own, it still is.
func (w *write) takeOver() (leasestore.Version, error) {
	holder, err := placeOf(w.was.holder)
	if err != nil {
		return "", err
	}
	version, err := w.displace(uint32(holder.number) + 1)
	if !errors.Is(err, zk.ErrNoNode) {
		return version, err
	}
	names, stat, err := w.conn.Children(w.path)
	if err != nil {
		return "", err
	}
	line, err := lineOf(names)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(line, place.foreign) {
		return "", w.yield()
	}
	return w.displace(places(stat))
}

// displace replaces the place of the holder, if the node has had as many places as had.
func (w *write) displace(had uint32) (leasestore.Version, error) {
	place, ops := w.place(had)
	stat, err := w.do(append(ops, remove(w.at(w.was.holder)))...)
	if err != nil {
		return "", err
	}
	return w.version(stat, place), nil
}

// yield frees the lease, and then returns ErrConflict.
func (w *write) yield() (err error) {
	w.next, w.bound = leasestore.Record{Token: w.next.Token}, ""
	if w.value, err = record.Encode(w.name, w.next); err != nil {
		return err
	}
	if _, err = w.leave(); err != nil {
		return err
	}
	return leasestore.ErrConflict
}
