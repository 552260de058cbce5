package distributeddata

import (
	"container/list"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
)

// watcher is an actor that is told of changes. Of each it is told once, through the most specific of its
// subscriptions: that to the key, or to the longest prefix.
//
// What it has to be told is bounded: each key that has changed once, and for each prefix how far the entries that
// were there when it subscribed have been walked over.
type watcher struct {
	pid            *actor.PID
	keys, prefixes map[string]*subscription
	noted          map[string]*told // keys that have changed, with what was told of them
	queue          []string         // those keys, in the order of their changes
	walks          []walk
	row            *list.Element // its place in subscriptions.behind; nil: none
	paced          bool          // it says when it has taken what it was sent
	sent           int           // notices since it was asked that
	asked          int           // questions that it has not answered
}

// walk tells of entries that are there, from a name on. It is for those of which no subscription to a longer
// prefix, or to the key, tells.
type walk struct{ prefix, from string }

// window is how many notices a subscriber is sent before it is asked whether it has taken them, and windows how
// many such questions it may owe an answer to.
const window, windows = 64, 2

// full reports whether the subscriber is slow: it is told nothing before it has taken something.
func (w *watcher) full() bool { return w.asked >= windows }

// behind reports whether there is anything to be told.
func (w *watcher) behind() bool { return len(w.queue) > 0 || len(w.walks) > 0 }

// idle reports whether there is no subscription left.
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

// cut ends a subscription. What a longer prefix has yet to walk over is left to a shorter one.
func (w *watcher) cut(s *subscription) {
	if s.exact {
		delete(w.keys, s.text)
		return
	}
	delete(w.prefixes, s.text)
	w.walks = slices.DeleteFunc(w.walks, func(k walk) bool { return w.longest(k.prefix) == nil })
}

// best returns the subscription through which the subscriber is told of a key; nil if there is none.
func (w *watcher) best(key string) *subscription {
	if s := w.keys[key]; s != nil {
		return s
	}
	return w.longest(key)
}

// longest returns the subscription to the longest prefix of a text.
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

// awaits reports whether a walk is about to tell of a key. It tells of what is there alone: that something is gone
// has to be told apart, since an earlier subscription may have told that it was there.
func (w *watcher) awaits(key string, now *published) bool {
	for _, k := range w.walks {
		if k.from <= key && strings.HasPrefix(key, k.prefix) && w.walksOver(k, key) {
			return !now.get(key).store.Empty()
		}
	}
	return false
}

// walksOver reports whether a walk tells of a key.
func (w *watcher) walksOver(k walk, key string) bool {
	s := w.best(key)
	return s != nil && !s.exact && len(s.text) <= len(k.prefix)
}

// note notes that a key holds something else than what was told of it.
func (w *watcher) note(key string, was *told) {
	if w.noted[key] != nil {
		return
	}
	if w.noted == nil {
		w.noted = map[string]*told{}
	}
	w.noted[key] = was
	w.queue = append(w.queue, key)
}

// toldOf notes that the subscriber is told what a key holds. That it holds nothing is not what a new subscription
// tells: it stays noted.
func (w *watcher) toldOf(key string, now told) {
	if w.noted[key] != nil && !now.store.Empty() {
		w.noted[key] = &now
	}
}

// begin begins to tell of what is there below a prefix, from the first entry on.
func (w *watcher) begin(prefix string) {
	w.walks = slices.DeleteFunc(w.walks, func(k walk) bool { return k.prefix == prefix })
	w.walks = append(w.walks, walk{prefix, prefix})
}

// tell calls notice for up to most keys that have changed or that a walk comes to, and returns how many it has
// looked at. notice may not return: what it was called for has been told.
func (w *watcher) tell(most int, now *published, notice func(s *subscription, key string, old told)) (looked int) {
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

// step goes on with the first walk.
func (w *watcher) step(most int, now *published, notice func(s *subscription, key string, old told)) (looked int) {
	k := &w.walks[0]
	for key := range now.entries(k.prefix, k.from) {
		if looked == most || w.full() {
			return looked
		}
		looked++
		mine := w.walksOver(*k, key)
		k.from = key + "\x00" // the next name in order
		if mine {
			notice(w.best(key), strings.Clone(key), told{})
		}
	}
	w.walks = slices.Delete(w.walks, 0, 1)
	return max(looked, 1)
}
