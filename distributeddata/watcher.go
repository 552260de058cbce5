package distributeddata

import (
	"container/list"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// watcher is an actor that subscribes to changes. It is notified of each change once, through its
// most specific subscription: the one to the key, or the one to the longest prefix.
//
// Its pending notices are bounded: each changed key is recorded once, and for each prefix a cursor
// over the entries that existed at the time of the subscription.
type watcher struct {
	pid            *actor.PID
	keys, prefixes map[string]*subscription
	noted          map[string]*entryView // keys that have changed, with the state last sent
	queue          []string              // those keys, in the order of their changes
	walks          []walk
	row            *list.Element // its element in subscriptions.behind; nil: none
	paced          bool          // it answers pace
	sent           int           // notices since the last pace
	asked          int           // unanswered paces
}

// walk sends the existing entries from a name on. It skips those that a subscription to a longer
// prefix, or to the key, covers.
type walk struct{ prefix, from string }

// window is the number of notices sent to a subscriber before it is asked whether it has taken
// them. windows is the maximum number of such questions that may be unanswered.
const window, windows = 64, 2

// full reports whether the subscriber is too slow: it gets nothing more before it has taken
// something.
func (w *watcher) full() bool { return w.asked >= windows }

// behind reports whether there are pending notices.
func (w *watcher) behind() bool { return len(w.queue) > 0 || len(w.walks) > 0 }

// idle reports whether no subscription is left.
func (w *watcher) idle() bool { return len(w.keys) == 0 && len(w.prefixes) == 0 }

func (w *watcher) find(text string, exact bool) *subscription {
	if exact {
		return w.keys[text]
	}
	return w.prefixes[text]
}

func (w *watcher) put(s *subscription) {
	subs := &w.prefixes
	if s.exact {
		subs = &w.keys
	}
	if *subs == nil {
		*subs = map[string]*subscription{}
	}
	(*subs)[s.text] = s
}

// cut removes a subscription. The rest of the walk of a longer prefix is left to a shorter one.
func (w *watcher) cut(s *subscription) {
	if s.exact {
		delete(w.keys, s.text)
		return
	}
	delete(w.prefixes, s.text)
	w.walks = slices.DeleteFunc(w.walks, func(k walk) bool { return w.longest(k.prefix) == nil })
}

// best returns the subscription through which the subscriber is notified of a key; nil if there is
// none.
func (w *watcher) best(key string) *subscription {
	if s := w.keys[key]; s != nil {
		return s
	}
	return w.longest(key)
}

// longest returns the subscription to the longest prefix of text, or nil.
func (w *watcher) longest(text string) (best *subscription) {
	if len(w.prefixes) < len(text) {
		for prefix, s := range w.prefixes {
			if (best == nil || len(prefix) > len(best.text)) && strings.HasPrefix(text, prefix) {
				best = s
			}
		}
		return best
	}
	for n := len(text); n >= 0; n-- {
		if s := w.prefixes[text[:n]]; s != nil {
			return s
		}
	}
	return nil
}

// awaits reports whether a walk will still send a key. A walk sends existing entries only: a
// removal must be sent separately, since an earlier subscription may have sent the entry.
func (w *watcher) awaits(key string, now *replicatorView) bool {
	for _, k := range w.walks {
		if k.from <= key && strings.HasPrefix(key, k.prefix) && w.walksOver(k, key) {
			return !now.get(key).store.Empty()
		}
	}
	return false
}

// walksOver reports whether a walk covers a key.
func (w *watcher) walksOver(k walk, key string) bool {
	s := w.best(key)
	return s != nil && !s.exact && len(s.text) <= len(k.prefix)
}

// note records that a key no longer holds what was last sent.
func (w *watcher) note(key string, was *entryView) {
	if w.noted[key] != nil {
		return
	}
	if w.noted == nil {
		w.noted = map[string]*entryView{}
	}
	w.noted[key] = was
	w.queue = append(w.queue, key)
}

// toldOf records that the subscriber is being sent the content of a key. A new subscription does
// not send that a key is empty, so such a key stays recorded.
func (w *watcher) toldOf(key string, now entryView) {
	if w.noted[key] != nil && !now.store.Empty() {
		w.noted[key] = &now
	}
}

// begin starts a walk over the existing entries with a prefix, at the first entry.
func (w *watcher) begin(prefix string) {
	w.walks = slices.DeleteFunc(w.walks, func(k walk) bool { return k.prefix == prefix })
	w.walks = append(w.walks, walk{prefix, prefix})
}

// tell calls notice for up to most keys that have changed or that a walk reaches, and returns the
// number of keys inspected. notice may not return: its key then counts as sent.
func (w *watcher) tell(most int, now *replicatorView, notice func(s *subscription, key string,
	old entryView)) (looked int) {
	for ; looked < most && len(w.queue) > 0 && !w.full(); looked++ {
		key := w.queue[0]
		old := *w.noted[key]
		w.queue = w.queue[1:]
		if delete(w.noted, key); len(w.queue) == 0 {
			w.queue, w.noted = nil, nil
		}
		if s := w.best(key); s != nil && !w.awaits(key, now) {
			notice(s, key, old)
		}
	}
	for looked < most && len(w.walks) > 0 && !w.full() {
		looked += w.step(most-looked, now, notice)
	}
	return looked
}

// step continues the first walk.
func (w *watcher) step(most int, now *replicatorView, notice func(s *subscription, key string,
	old entryView)) (looked int) {
	k := &w.walks[0]
	for key := range now.entries(k.prefix, k.from) {
		if looked == most || w.full() {
			return looked
		}
		looked++
		mine := w.walksOver(*k, key)
		k.from = key + "\x00" // the next name in order
		if mine {
			notice(w.best(key), strings.Clone(key), entryView{})
		}
	}
	w.walks = slices.Delete(w.walks, 0, 1)
	return max(looked, 1)
}
