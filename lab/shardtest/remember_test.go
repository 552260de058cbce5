package shardtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/ports"
)

// remembered is how many entities are remembered.
const remembered = 100

// again starts three processes on the durable data of the former ones.
func (c *members) again(shards int) {
	c.t.Helper()
	c.shards, c.live = shards, nil
	for i, port := range ports.Free(c.t, 3) {
		c.launch((*exec.Cmd).Start, spec{Host: "127.0.0.1", Port: port,
			Data: filepath.Join(c.dir, fmt.Sprint("data", i))})
	}
	c.together()
	c.settled()
}

// started waits until all entities have been started since their files were removed.
func (c *members) started() {
	c.t.Helper()
	var missing []string
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(50 * time.Millisecond) {
		missing = nil
		for e := range remembered {
			if id := fmt.Sprint("e", e); !exists(filepath.Join(c.dir, id)) {
				missing = append(missing, id)
			}
		}
		if missing == nil {
			return
		}
	}
	c.t.Fatalf("with %d shards, %d of %d entities are not started: %v", c.shards, len(missing),
		remembered, missing)
}

// All members stop, in order or by SIGKILL, and start with another number of shards: every entity
// that is remembered runs again, without a message.
func TestReal_RemembersWithAnotherNumberOfShards(t *testing.T) {
	c := newMembers(t, 0)
	c.again(12)
	c.tell(c.live[0], command{Send: 1, Entities: remembered})
	c.sent(c.live[0])
	c.started()
	for _, next := range []struct {
		shards int
		stop   func(*process)
	}{{10, (*process).Hangup}, {37, (*process).Kill}} {
		for _, p := range c.live {
			next.stop(p)
		}
		for _, p := range c.live {
			<-p.Gone()
		}
		for e := range remembered {
			require.NoError(t, os.Remove(filepath.Join(c.dir, fmt.Sprint("e", e))))
		}
		c.again(next.shards)
		c.started()
	}
}
