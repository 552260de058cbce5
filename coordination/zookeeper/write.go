package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
)

// write is one Swap. Its last request decides; all others leave the record as it is.
type write struct {
	s     *Store
	conn  *zk.Conn
	name  string
	path  string
	was   mark
	next  coordination.Record
	value []byte
}

func (w *write) at(name string) string { return w.path + "/" + name }

func (w *write) set() *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: w.path, Data: w.value, Version: w.was.data}
}

func check(path string) *zk.CheckVersionRequest {
	return &zk.CheckVersionRequest{Path: path, Version: -1}
}

func remove(path string) *zk.DeleteRequest { return &zk.DeleteRequest{Path: path, Version: -1} }

// create makes the node of a lease, at once with the holder's place.
func (w *write) create() (coordination.Version, error) {
	maker := w.s.newMaker()
	w.s.setEntering(maker, true)
	defer w.s.setEntering(maker, false)
	ops := []any{&zk.CreateRequest{Path: w.path, Acl: w.s.cfg.ACL}}
	if w.next.Nonce != "" {
		ops = append(ops, w.place(maker))
	}
	ops = append(ops, w.set()) // whose answer tells the version
	answer, err := w.conn.Multi(ops...)
	if errors.Is(err, zk.ErrNoNode) {
		if err := w.s.makeAbove(w.path); err != nil {
			return "", err
		}
		answer, err = w.conn.Multi(ops...)
	}
	if err != nil {
		return "", err
	}
	stat := answer[len(answer)-1].Stat
	if w.next.Nonce == "" {
		return free(stat), nil
	}
	return heldBy(stat, path.Base(answer[1].String)), nil
}

// makeAbove makes the nodes above one.
func (s *Store) makeAbove(at string) error {
	for i, c := range at {
		if c != '/' || i == 0 {
			continue
		}
		if _, err := s.link.conn.Create(at[:i], nil, 0, s.cfg.ACL); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("%w: zookeeper: node %.200q: %w", coordination.ErrRefused, at[:i], err)
		}
	}
	return nil
}

// newMaker names a place that is being made.
func (s *Store) newMaker() string { return fmt.Sprintf("%s-%x", s.instance, s.attempts.Add(1)) }

func (w *write) place(maker string) *zk.CreateRequest {
	return &zk.CreateRequest{Path: w.at(prefixOf(tagOf(w.next.Nonce), maker)), Data: []byte(w.next.Owner), Acl: w.s.cfg.ACL, Flags: zk.FlagEphemeral | zk.FlagSequence}
}

// replace writes over a record. Who has a place needs one request.
func (w *write) replace(ctx context.Context) (coordination.Version, error) {
	switch {
	case w.was.holder == "":
		return w.enter(ctx)
	case w.next.Nonce == "":
		return w.leave()
	case strings.HasPrefix(w.was.holder, "concord-"+tagOf(w.next.Nonce)+"-"):
		answer, err := w.conn.Multi(check(w.at(w.was.holder)), w.set())
		if err != nil {
			return "", err
		}
		return heldBy(answer[1].Stat, w.was.holder), nil
	}
	return w.enter(ctx)
}

// leave frees the lease and wakes who is next in line. If somebody is, the version is worth nothing: no
// write may rest on what was before that tenure.
func (w *write) leave() (coordination.Version, error) {
	answer, err := w.conn.Multi(remove(w.at(w.was.holder)), w.set())
	if err != nil {
		return "", err
	}
	return w.freed(answer[1].Stat), nil
}

func (w *write) freed(s *zk.Stat) coordination.Version {
	if s.NumChildren > 0 {
		return locked(s)
	}
	return free(s)
}

// enter takes a place in line and writes from there, if the line allows it. The place does not outlast
// a write that has failed.
func (w *write) enter(ctx context.Context) (coordination.Version, error) {
	maker := w.s.newMaker()
	w.s.setEntering(maker, true)
	defer w.s.setEntering(maker, false)
	answer, err := w.conn.Multi(&zk.CheckVersionRequest{Path: w.path, Version: w.was.data}, w.place(maker))
	if err != nil {
		return "", err // if it was made all the same, the next Load removes it
	}
	mine := path.Base(answer[1].String)
	version, err := w.from(ctx, mine)
	switch e := outcome(err); {
	case errors.Is(e, coordination.ErrConflict), errors.Is(e, coordination.ErrRefused):
		_ = w.conn.Delete(w.at(mine), -1) // or the next Load does it
	case err != nil:
		w.s.abandon(w.path, w.was.data, mine)
	}
	return version, err
}

// abandon removes a place, unless the record has changed: its write may have been carried out although it was not
// answered, and who finds it relies on the place.
func (s *Store) abandon(at string, data int32, name string) {
	_, _ = s.link.conn.Multi(&zk.CheckVersionRequest{Path: at, Version: data}, remove(at+"/"+name))
}

// from writes from a place. What is before it in line: the holder whom the version names, and places that nobody holds
// by, which go with the same write; a lock of others is a conflict. From the look at the line on nothing can
// come before the place, and as long as it exists the node is the same.
func (w *write) from(ctx context.Context, mine string) (coordination.Version, error) {
	names, stat, err := w.conn.Children(w.path)
	if err != nil {
		return "", err
	}
	line, err := lineOf(names)
	if err != nil {
		return "", err
	}
	me, err := placeOf(mine)
	switch {
	case err != nil:
		return "", err
	case stat.Mzxid != w.was.written, w.was.holder == "" && w.was.had != countAt(me.number):
		return "", coordination.ErrConflict
	}
	ahead := me.ahead(line)
	switch {
	case w.was.holder != "" && !slices.ContainsFunc(ahead, func(p place) bool { return p.name == w.was.holder }), ctx.Err() != nil:
		return "", coordination.ErrConflict
	case slices.ContainsFunc(ahead, place.foreign):
		return "", w.yield(mine)
	}
	var ops []any
	for _, p := range ahead {
		ops = append(ops, remove(w.at(p.name)))
	}
	return w.decide(ops, mine)
}

func (w *write) decide(ops []any, mine string) (coordination.Version, error) {
	blank := w.next.Nonce == ""
	if blank {
		ops = append(ops, remove(w.at(mine)))
	} else {
		ops = append(ops, check(w.at(mine)))
	}
	answer, err := w.conn.Multi(append(ops, w.set())...)
	if err != nil {
		return "", err
	}
	stat := answer[len(answer)-1].Stat
	if blank {
		return w.freed(stat), nil
	}
	return heldBy(stat, mine), nil
}

// yield is a conflict. If the version named a holder, who is overdue, others are next and get the lock: nobody
// else would free it for them.
func (w *write) yield(mine string) error {
	if w.was.holder == "" {
		return coordination.ErrConflict
	}
	value, err := record.Encode(w.name, coordination.Record{Token: w.next.Token})
	if err != nil {
		return err
	}
	w.value = value
	_, err = w.conn.Multi(remove(w.at(w.was.holder)), remove(w.at(mine)), w.set())
	if err != nil {
		return err
	}
	return coordination.ErrConflict
}
