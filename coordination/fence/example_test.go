package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
)

// A guard rejects effects with a lower token than the largest that it has seen.
func ExampleGuard() {
	var guard fence.Guard
	write := func(token coordination.Token, text string) error {
		return guard.Do(context.Background(), "ledger", token, func(context.Context) error {
			fmt.Println("written:", text)
			return nil
		})
	}
	fmt.Println(write(1, "by the first holder"))
	fmt.Println(write(2, "by the second"))
	err := write(1, "by the first, which was paused")
	fmt.Println(err, errors.Is(err, fence.ErrStale))
	// Output:
	// written: by the first holder
	// <nil>
	// written: by the second
	// <nil>
	// fence: stale token 1 for "ledger", 2 has been seen true
}

// network passes all requests to one server.
type network struct{ server http.Handler }

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	n.server.ServeHTTP(w, r)
	return w.Result(), nil
}

// An HTTP server rejects requests of former holders. Its client takes the token from the context
// of the lease's work.
func ExampleGuard_Handler() {
	ledger := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "written")
	})
	var guard fence.Guard
	server := guard.Handler(func(*http.Request) string { return "ledger" }, ledger)

	session, err := coordination.Open(memory.New(), coordination.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(context.Background())
	client := &http.Client{Transport: fence.Transport{Base: network{server}}}
	post := func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ledger",
			strings.NewReader("5 EUR"))
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		fmt.Println(resp.Status)
		return resp.Body.Close()
	}
	work := func(ctx context.Context, _ *coordination.Grant) error { return post(ctx) }
	fmt.Println(session.Lease("billing").Do(context.Background(), work))
	fmt.Println(errors.Is(post(context.Background()), fence.ErrInvalid))
	// Output:
	// 200 OK
	// <nil>
	// true
}

// An actor rejects messages of former holders, whatever the order in which they arrive. An entity
// of package sharding passes itself as the tenure.
func ExampleEnvelope() {
	session, err := coordination.Open(memory.New(), coordination.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(context.Background())
	system := actor.NewActorSystem()
	defer system.Shutdown()

	var guard fence.Guard
	ledger := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		entry, ok := ctx.Message().(string)
		if !ok {
			return
		}
		token, err := fence.TokenOfMessage(ctx.MessageHeader())
		if err == nil {
			err = guard.Do(context.Background(), "ledger", token, func(context.Context) error {
				fmt.Println("written:", entry)
				return nil
			})
		}
		if err != nil {
			fmt.Println(err)
		}
	}))

	for _, entry := range []string{"rent", "wages"} {
		err := session.Lease("ledger").Do(context.Background(),
			func(_ context.Context, g *coordination.Grant) error {
				e, err := fence.Envelope(g, entry)
				if err != nil {
					return err // the lease is lost: send nothing
				}
				system.Root.Send(ledger, e)
				return nil
			})
		if err != nil {
			fmt.Println(err)
		}
	}
	system.Root.Send(ledger, "by a program that has no lease")
	_ = system.Root.PoisonFuture(ledger).Wait()
	// Output:
	// written: rent
	// written: wages
	// fence: invalid: no header Fencing-Token
}

// Of two concurrent writes to a register, the one with the larger token wins at every replica.
func ExampleRegister() {
	former, holder := crdt.NewReplica(1), crdt.NewReplica(2)
	var left, right fence.Register[string]
	left.Set(former.Writer(), 1, "by a former holder")
	right.Set(holder.Writer(), 2, "by the holder")
	fmt.Println(left.Merge(right), right.Merge(left))
	// Output: by the holder (token 2) by the holder (token 2)
}
