package etcd

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// entry is the value of a member's key, in the format of Proto.Actor's provider.
type entry struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Host    string   `json:"host"`
	Address string   `json:"address"`
	Port    int      `json:"port"`
	Kinds   []string `json:"kinds"`
	Alive   bool     `json:"alive"`
}

func encode(m roster.Member) (string, error) {
	kinds := m.Kinds
	if kinds == nil {
		kinds = []string{}
	}
	data, err := json.Marshal(entry{m.ID, m.ID, m.Host, m.Host, m.Port, kinds, true})
	return string(data), err
}

func decode(kv *mvccpb.KeyValue) (roster.Member, error) {
	var e entry
	if err := json.Unmarshal(kv.Value, &e); err != nil {
		return roster.Member{}, fmt.Errorf("key %.200q: %w", kv.Key, err)
	}
	if e.Host == "" {
		e.Host = e.Address
	}
	if e.ID == "" || e.Host == "" || e.Port < 1 || e.Port > 65535 {
		return roster.Member{},
			fmt.Errorf("key %.200q: no id, no host, or port %d, which must be from 1 to 65535",
				kv.Key, e.Port)
	}
	return roster.Member{ID: e.ID, Host: e.Host, Port: e.Port, Kinds: e.Kinds,
		Order: kv.CreateRevision}, nil
}

// listing holds the members by key.
type listing struct {
	log *slog.Logger
	by  map[string]roster.Member
}

func (l *listing) members() []roster.Member { return slices.Collect(maps.Values(l.by)) }

func (l *listing) apply(events []*clientv3.Event) {
	for _, e := range events {
		if e.Type == clientv3.EventTypeDelete {
			delete(l.by, string(e.Kv.Key))
			continue
		}
		l.put(e.Kv)
	}
}

// put records a member. It drops a key that is not a valid member; each change of such a key is
// logged once.
func (l *listing) put(kv *mvccpb.KeyValue) {
	m, err := decode(kv)
	if err != nil {
		l.log.Warn("etcd key is not a member", slog.Any("error", err))
		delete(l.by, string(kv.Key))
		return
	}
	l.by[string(kv.Key)] = m
}
