package core

import (
	"reflect"
	"slices"

	"github.com/concord-go/concord/distributeddata/internal/transfer"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/causal"
)

// frozen returns a copy of the whole state of a replica, as a snapshot of its machine contains it.
func frozen(c *Core) *Core {
	n := *c
	n.peers = nil
	for _, p := range c.peers {
		n.peers = append(n.peers, own(p))
	}
	n.log.origins = map[causal.Replica]*originLog{}
	for r, o := range c.log.origins {
		q := *o
		q.events = slices.Clone(o.events)
		q.room, q.cut = q.events, 0
		n.log.origins[r] = &q
	}
	n.batch = batch{stores: map[string]causal.Store{}}
	n.out = transfer.NewOut[*answer](c.cfg.timing(), c.cfg.PartBytes)
	n.waits = waiting.New[Level, task](c.cfg.BeatInterval)
	n.effects, n.touched, n.ledger.touched = nil, nil, nil
	n.bases, n.held = c.bases.Next(), nil
	n.open = openEvents{}
	unshare(reflect.ValueOf(&n).Elem())
	return &n
}

// own returns a copy of what p points to that shares no slice and no map with it.
func own[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	unshare(reflect.ValueOf(&c).Elem())
	return &c
}

// unshare gives v slices and maps of its own, at every depth. What pointers lead to stays shared.
func unshare(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range v.Fields() {
			unshare(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem())
		}
	case reflect.Array:
		for i := range v.Len() {
			unshare(v.Index(i))
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
		if k := v.Type().Elem().Kind(); k != reflect.Struct && k != reflect.Array &&
			k != reflect.Slice && k != reflect.Map {
			return
		}
		for i := range v.Len() {
			unshare(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for k, e := range v.Seq2() {
			own := reflect.New(e.Type()).Elem()
			own.Set(e)
			unshare(own)
			c.SetMapIndex(k, own)
		}
		v.Set(c)
	}
}
