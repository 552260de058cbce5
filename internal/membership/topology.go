package membership

import (
	"crypto/rand"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/early"
)

// onEvent runs in the provider's goroutine, under the lock of Proto.Actor's member list. It copies
// the members, sends them to our actor, and calls nothing of the cluster.
func (s *Service) onEvent(e any) {
	t, ok := e.(*cluster.ClusterTopology)
	if !ok {
		return
	}
	members := make([]listed, 0, len(t.Members))
	for _, m := range t.Members {
		if m != nil {
			members = append(members, copyMember(m))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stop {
		return
	}
	if s.mu.actor == nil && !s.start(members) {
		return
	}
	contain.Send(s.system, s.mu.actor, &topology{members})
}

// start spawns the actor if this member is listed. Before that, the system does not have its final
// address.
func (s *Service) start(members []listed) bool {
	address := s.system.Address()
	if !slices.ContainsFunc(members, func(m listed) bool { return m.Address == address }) {
		return false
	}
	a := newMemberActor(s, newCore(s.mu.tuning.apply(defaultSettings()), clusterName(s.system),
		address,
		s.system.ID, incarnation(s.system.ID, address), processKey()))
	pid, err := s.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return a },
		early.Mailbox(), bugs.Guardian(component, nil)), ActorName)
	if err != nil {
		s.system.Logger().Error("membership not started", slog.Any("error", err))
		return false
	}
	s.mu.actor = pid
	if s.mu.arbiter {
		contain.Send(s.system, pid, arbiter{true})
	}
	return true
}

func copyMember(m *cluster.Member) listed {
	l := listed{ID: m.Id, Address: m.Host + ":" + strconv.Itoa(int(m.Port))}
	for _, k := range m.Kinds {
		if r, ok := strings.CutPrefix(k, RolePrefix); ok && r != "" {
			l.Roles = append(l.Roles, r)
		}
		v, ok := strings.CutPrefix(k, VersionPrefix)
		if ok && CheckVersion(v) == nil && CompareVersions(v, l.AppVersion) > 0 {
			l.AppVersion = v
		}
	}
	slices.Sort(l.Roles)
	l.Roles = slices.Compact(l.Roles)
	return l
}

// clusterName returns the name of the cluster, or "" if system has none, as on a virtual network.
func clusterName(system *actor.ActorSystem) (name string) {
	defer func() {
		if recover() != nil { // Proto.Actor panics if there is none
			name = ""
		}
	}()
	return cluster.GetCluster(system).Config.Name
}

// processKey is the key of this process, which all its incarnations share.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
})

// incarnation returns a different number for every process: system ids are random.
func incarnation(systemID, address string) uint64 {
	h := fnv.New64a()
	for _, s := range []string{systemID, "\x00", address, "\x00",
		strconv.FormatInt(time.Now().UnixNano(), 10)} {
		_, _ = h.Write([]byte(s))
	}
	return max(h.Sum64(), 1)
}
