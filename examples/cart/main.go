// Command cart is a shopping cart over HTTP, with majority writes and reads at any member. If no
// majority is reachable, the member uses its own replica: a change has been applied there and is
// replicated later, which the response says with 202 Accepted, and a read may miss recent changes.
// API in api.go is the handler; a real member serves it with http.Server.
//
//	go run ./examples/cart
//
//	member 1: PUT /carts/17/items/milk: 200 {"items":["milk"],"at":"majority"}
//	member 3 is cut off
//	member 3: PUT /carts/17/items/bread: 202 {"items":["bread","milk"],"at":"1 of 2 replicas"}
//	member 3: GET /carts/17: 200 {"items":["bread","milk"],"at":"this member"}
//	member 1: DELETE /carts/17/items/milk: 200 {"items":[],"at":"majority"}
//	member 1: GET /carts/17: 200 {"items":[],"at":"majority"}
//	the network is whole again, and member 3's change is replicated
//	member 2: GET /carts/17: 200 {"items":["bread"],"at":"majority"}
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/examples/three"
)

func main() { three.Main(run) }

func run(ctx context.Context, out io.Writer, c *three.Cluster) error {
	// The members of this example share a process, so requests reach their handlers directly.
	send := func(member int, method, path string) {
		response := httptest.NewRecorder()
		API(c.DD[member-1]).ServeHTTP(response,
			httptest.NewRequestWithContext(ctx, method, path, http.NoBody))
		body := strings.TrimSpace(response.Body.String())
		fmt.Fprintf(out, "member %d: %s %s: %d %s\n", member, method, path, response.Code, body)
	}
	send(1, "PUT", "/carts/17/items/milk")
	fmt.Fprintln(out, "member 3 is cut off")
	c.Cut(2)
	send(3, "PUT", "/carts/17/items/bread")
	send(3, "GET", "/carts/17")
	send(1, "DELETE", "/carts/17/items/milk")
	send(1, "GET", "/carts/17")
	fmt.Fprintln(out, "the network is whole again, and member 3's change is replicated")
	c.Heal()
	if _, err := Carts.Key("17").Get(ctx, c.DD[1], distributeddata.All); err != nil { // until it has
		return err
	}
	send(2, "GET", "/carts/17")
	return nil
}
