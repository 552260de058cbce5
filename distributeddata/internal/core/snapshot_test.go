package core

import (
	"reflect"

	"github.com/concord-go/concord/distributeddata/internal/transfer"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
)

// frozen returns a copy of the whole state of a replica, as a snapshot of its machine contains it.
func frozen(c *Core) *Core {
	n := *c
	n.peers = nil
	for _, p := range c.peers {
		n.peers = append(n.peers, own(p))
	}
	n.out = outlet{transfer.NewOut[*answer](c.cfg.timing(), c.cfg.PartBytes)}
	n.waits = waiting.New[Level, task](c.cfg.BeatInterval)
	n.effects, n.touched = nil, nil
	n.bases.Set, n.probes.held = c.bases.Next(), nil
	n.group = commitGroup{}
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

// hidden returns a field of another part, for a test that damages it.
func hidden[T, P any](part *P, field string) *T {
	f := reflect.ValueOf(part).Elem().FieldByName(field)
	return (*T)(f.Addr().UnsafePointer())
}

// unshare gives v slices and maps of its own, at every depth. What pointers lead to stays shared,
// except the log.
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
	case reflect.Pointer:
		if v.IsNil() || v.Type().Elem().Name() != "originLog" {
			return
		}
		log := reflect.New(v.Type().Elem())
		log.Elem().Set(v.Elem())
		unshare(log.Elem())
		*(*uint64)(log.Elem().FieldByName("cut").Addr().UnsafePointer()) = 0
		reflect.NewAt(log.Elem().FieldByName("room").Type(),
			log.Elem().FieldByName("room").Addr().UnsafePointer()).Elem().Set(reflect.NewAt(
			log.Elem().FieldByName("events").Type(),
			log.Elem().FieldByName("events").Addr().UnsafePointer()).Elem())
		v.Set(log)
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
		if k := v.Type().Elem().Kind(); k != reflect.Struct && k != reflect.Array &&
			k != reflect.Slice && k != reflect.Map && k != reflect.Pointer {
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
