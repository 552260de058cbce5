package distributeddata

import (
	"container/list"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/expiry"
	"github.com/concord-go/concord/internal/causal"
)

// subscriptions are the subscriptions at one replica's actor. A change is recorded at each
// subscriber that it concerns. The cost depends only on the number of those subscribers and on the
// number of different prefix lengths. A subscriber gets the newest value that it has not been sent,
// however many values came in between.
type subscriptions struct {
	watchers map[string]*watcher // by the id of their PID; all are actors of this member
	patterns[*subscription]
	behind list.List       // of *watcher: those with pending changes
	total  int             // of subscriptions
	was    *replicatorView // the state up to which changes have been recorded
}

// subscription is the subscription of one subscriber to a key or a prefix.
type subscription struct {
	pattern
	w      *watcher
	notice noticeFunc
}

// noticeFunc sends the message for the change of an entry from the state old to the state now.
type noticeFunc func(key string, old, now entryView, send func(any))

// entryView is the content of an entry at some state.
type entryView struct {
	store causal.Store // without the atom of its last use
	bytes int          // of all atoms, with that one
	seen  causal.Vector
	use   expiry.Use
	ttl   int64 // in milliseconds; 0: the entry does not expire
}

// gone reports whether the entry does not exist.
func (t entryView) gone() bool { return t.store.Empty() || permanentlyDeleted(t.store) }

// same reports whether both certainly show the same value.
func (t entryView) same(o entryView) bool {
	return t.store.SameValue(o.store) || t.use.At+o.use.At != 0 && t.store.EqualValue(o.store)
}

// expired reports whether the entry is gone in now and had not been used for its time to live.
func (t entryView) expired(now entryView, at time.Time) bool {
	return now.store.Empty() && t.use.Passed(at.UnixMilli(), t.ttl)
}

func newSubscriptions() *subscriptions {
	return &subscriptions{watchers: map[string]*watcher{}}
}

// watcher returns the subscriber with a PID, and whether it is a new one.
func (s *subscriptions) watcher(pid *actor.PID) (w *watcher, isNew bool) {
	if w = s.watchers[pid.Id]; w != nil {
		return w, false
	}
	w = &watcher{pid: pid}
	s.watchers[pid.Id] = w
	return w, true
}

// add adds a subscription. It replaces one of the same subscriber to the same key or prefix.
func (s *subscriptions) add(w *watcher, text string, exact bool, notice noticeFunc) *subscription {
	if old := w.find(text, exact); old != nil {
		old.notice = notice
		return old
	}
	sub := &subscription{pattern: pattern{text: text, exact: exact}, w: w, notice: notice}
	w.put(sub)
	s.total++
	s.patterns.add(sub)
	return sub
}

// has reports whether the subscription exists.
func (s *subscriptions) has(pid *actor.PID, text string, exact bool) bool {
	w := s.watchers[pid.Id]
	return w != nil && w.find(text, exact) != nil
}

// remove removes a subscription, if it exists, and reports whether it was the last of its
// subscriber.
func (s *subscriptions) remove(pid *actor.PID, text string, exact bool) (last bool) {
	w := s.watchers[pid.Id]
	if w == nil {
		return false
	}
	sub := w.find(text, exact)
	if sub == nil {
		return false
	}
	s.drop(sub)
	if w.cut(sub); w.idle() {
		s.forget(w)
		return true
	}
	return false
}

// drop removes a subscription from its index.
func (s *subscriptions) drop(sub *subscription) {
	s.total--
	s.patterns.remove(sub)
}

// removeAll removes a subscriber that has stopped.
func (s *subscriptions) removeAll(pid *actor.PID) {
	w := s.watchers[pid.Id]
	if w == nil {
		return
	}
	for _, subs := range []map[string]*subscription{w.keys, w.prefixes} {
		for _, sub := range subs {
			s.drop(sub)
		}
	}
	s.forget(w)
}

func (s *subscriptions) forget(w *watcher) {
	delete(s.watchers, w.pid.Id)
	s.settled(w)
}

// changed records that keys have changed since its last call, when the state was s.was. It reports
// whether a subscriber has pending changes.
func (s *subscriptions) changed(keys []string, now *replicatorView) bool {
	for _, key := range keys {
		var before *entryView
		s.matching(key, func(sub *subscription) {
			if before == nil {
				before = new(s.was.get(key))
			}
			sub.w.note(key, before)
			s.late(sub.w)
		})
	}
	s.was = now
	return s.behind.Len() > 0
}

// caughtUp records all changes since the last call of changed that no one reported.
func (s *subscriptions) caughtUp(now *replicatorView) {
	var keys []string
	for key := range now.changes(s.was, "") {
		keys = append(keys, causal.Clone(key))
	}
	s.changed(keys, now)
}

// late puts a subscriber into the queue of those with pending changes, unless it still has to take
// earlier notices.
func (s *subscriptions) late(w *watcher) {
	if w.row == nil && w.behind() && !w.full() {
		w.row = s.behind.PushBack(w)
	}
}

// settled removes a subscriber from that queue.
func (s *subscriptions) settled(w *watcher) {
	if w.row != nil {
		s.behind.Remove(w.row)
		w.row = nil
	}
}

// next returns the first subscriber of the queue and moves it to the end; nil if the queue is
// empty.
func (s *subscriptions) next() *watcher {
	e := s.behind.Front()
	if e == nil {
		return nil
	}
	s.behind.MoveToBack(e)
	return e.Value.(*watcher)
}
