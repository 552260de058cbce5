// Command lobby runs chat rooms on three members. A room is a sharded entity, alive once, that
// numbers the lines said in it. The lines and the list of persons of a room are replicated data, so
// a person can listen at any member. A member that hosts rooms leaves while people talk: its rooms
// move, no line is lost or numbered twice, and all persons hear the same lines in the same order.
//
//	go run ./examples/lobby
//
//	ann, ben and cid are in the rooms chess, go, lobby
//	the member that hosts the lobby, and that cid is connected to, leaves while they talk
//	another member hosts the lobby, under a later token
//	cid is connected to another member; in the lobby: ann, ben, cid
//	all heard 100 lines in chess, numbered 1 to 100, in the same order
//	all heard 100 lines in go, numbered 1 to 100, in the same order
//	all heard 100 lines in lobby, numbered 1 to 100, in the same order
//	the lobby numbered lines at both members, and its tokens never fell
//	they go; in the lobby: nobody
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
	"github.com/concord-go/concord/sharding"
)

var rooms = []string{"chess", "go", "lobby"}

// each is the number of lines that a person says, in turn in each room.
const each = 99

// lobby holds the parts of all members.
type lobby struct {
	regions [three.Members]*sharding.Region[Message]
	dd      [three.Members]*distributeddata.Replicator
	said    atomic.Int64 // lines that have been answered
}

// attach prepares a member for hosting rooms.
func (l *lobby) attach(m three.Member) (err error) {
	l.dd[m.Index] = m.DD
	l.regions[m.Index], err = sharding.New[Message](m.System, m.Session, m.DD,
		sharding.Config{Type: "room", Shards: 32, MinMembers: three.Members},
		func(e sharding.Entity) actor.Actor { return open(e, m.DD) })
	return err
}

// host returns the member that hosts a room, and the token of its tenure; or 0 if none does.
func (l *lobby) host(room string) (at int, token coordination.Token) {
	for i, r := range l.regions {
		for _, s := range r.Status().Shards {
			if s.Shard == r.Ref(room).Shard() && s.State == sharding.Active && s.Token > token {
				at, token = i, s.Token
			}
		}
	}
	return at, token
}

// talk says the lines of a person. The last ones, one in each room, wait until the member has left.
func (l *lobby) talk(ctx context.Context, p *person, left <-chan struct{}) error {
	for nr := range each {
		if nr == each-len(rooms) {
			select {
			case <-left:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := p.say(ctx, rooms[nr%len(rooms)],
			line{p.name, nr + 1, fmt.Sprint("hello ", nr+1)}); err != nil {
			return err
		}
		l.said.Add(1)
	}
	return nil
}

func (l *lobby) run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	usher := &person{name: "usher", lobby: l}
	for i, room := range rooms {
		if err := usher.say(ctx, room, line{usher.name, i + 1, "welcome"}); err != nil {
			return err
		}
	}
	leaving, before := l.host("lobby")

	ann, ben, cid := l.person("ann", leaving+1), l.person("ben", leaving+2),
		l.person("cid", leaving)
	all := []*person{ann, ben, cid}
	left, ended := make(chan struct{}), make(chan error, len(all))
	for _, p := range all {
		if err := p.enter(ctx); err != nil {
			return err
		}
		stop := p.listen(ctx)
		defer stop()
		go func() { ended <- l.talk(ctx, p, left) }()
	}
	fmt.Fprintln(out, "ann, ben and cid are in the rooms", list(rooms))

	if err := three.Until(ctx, func() bool { return l.said.Load() >= each }); err != nil {
		return err
	}
	fmt.Fprintln(out, "the member that hosts the lobby, and that cid is connected to, leaves while they talk")
	if err := c.Leave(ctx, leaving); err != nil {
		return err
	}
	close(left)
	for range all {
		if err := <-ended; err != nil {
			return err
		}
	}
	return l.audit(ctx, out, all, leaving, before)
}

// person returns a person who is connected to a member.
func (l *lobby) person(name string, at int) *person {
	return &person{name: name, lobby: l, at: at % three.Members, heard: map[string][]heard{}}
}

func memberName(i int) string { return fmt.Sprint("member ", i+1) }

func list(names []string) string { return strings.Join(names, ", ") }

func main() {
	l := &lobby{}
	if err := three.RunWithLeases(context.Background(), os.Stdout, memory.New(), l.attach,
		l.run); err != nil {
		log.Fatal(err)
	}
}
