// Command presence tracks which users are online: a user is online while at least one of the user's
// devices is connected to any member. When a member is permanently gone, another one removes the
// devices that were connected to it.
//
//	go run ./examples/presence
//
//	ann connects her phone to member 1
//	ann connects her laptop to member 2
//	ben connects his phone to member 2
//	online: ann, ben
//	ann disconnects her phone from member 1
//	online: ann, ben
//	member 2 is gone for good
//	online: nobody
package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

// devices are the devices of users, as "member/device". An add wins over a concurrent remove: a
// device that reconnects elsewhere while its old connection is cleaned up stays.
type devices = crdt.ORMultiMap[string, string]

// Online has the devices of each user that is online.
var Online = distributeddata.NewKey("online", devices{})

func connect(ctx context.Context, dd *distributeddata.Replicator, user, device string) error {
	_, err := Online.Update(ctx, dd, func(w *crdt.Writer, online *devices) error {
		online.Add(w, user, device)
		return nil
	}, distributeddata.Majority)
	return err
}

func disconnect(ctx context.Context, dd *distributeddata.Replicator, user, device string) error {
	_, err := Online.Update(ctx, dd, func(w *crdt.Writer, online *devices) error {
		online.Remove(w, user, device)
		return nil
	}, distributeddata.Majority)
	return err
}

// clean removes all devices of a member, in one atomic update.
func clean(ctx context.Context, dd *distributeddata.Replicator, member string) error {
	_, err := Online.Update(ctx, dd, func(w *crdt.Writer, online *devices) error {
		for user, device := range online.All() { // the value before the update
			if strings.HasPrefix(device, member+"/") {
				online.Remove(w, user, device)
			}
		}
		return nil
	}, distributeddata.Majority)
	return err
}

// users returns the names of the users that are online.
func users(ctx context.Context, dd *distributeddata.Replicator) (string, error) {
	online, err := Online.Get(ctx, dd, distributeddata.Majority)
	if online.Len() == 0 {
		return "nobody", nil
	}
	return strings.Join(slices.Collect(online.Keys()), ", "), err
}

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	one, two, three := c.DD[0], c.DD[1], c.DD[2]
	for _, step := range []struct {
		line string
		do   func() error
	}{
		{"ann connects her phone to member 1", func() error {
			return connect(ctx, one, "ann", "member-1/phone")
		}},
		{"ann connects her laptop to member 2", func() error {
			return connect(ctx, two, "ann", "member-2/laptop")
		}},
		{"ben connects his phone to member 2", func() error {
			return connect(ctx, two, "ben", "member-2/phone")
		}},
		{"", nil},
		{"ann disconnects her phone from member 1", func() error {
			return disconnect(ctx, one, "ann", "member-1/phone")
		}},
		{"", nil},
		{"member 2 is gone for good", func() error {
			c.Cut(1)
			return clean(ctx, one, "member-2")
		}},
		{"", nil},
	} {
		if step.do == nil {
			online, err := users(ctx, three)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, "online:", online)
			continue
		}
		fmt.Fprintln(out, step.line)
		if err := step.do(); err != nil {
			return err
		}
	}
	c.Heal()
	return nil
}
