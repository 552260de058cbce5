// Package fence refuses the effects of who held a lease once and does not know yet that it is over.
//
// A process may be stopped between a Check of its lease and the effect that follows, for longer than any
// time to live, and then act while another holds the lease. No lease can prevent that; the target of the
// effect can: it keeps the highest fencing token it has seen and refuses lower ones, in the same step as
// the effect. Four kinds of target are covered:
//
//	Guard           effects of one process: a device, a file, a cache
//	Guard.Handler   an HTTP server; Transport puts the token into the requests of its clients
//	Table           a database: the token is compared inside the caller's transaction
//	Register        a replicated value
//
// A service in front of something that knows no tokens:
//
//	var guard fence.Guard
//	http.Handle("/ledger", guard.Handler(func(*http.Request) string { return "ledger" }, ledger))
//
// and its client, which works under a lease:
//
//	client := &http.Client{Transport: fence.Transport{}}
//	err := session.Lease("billing").Do(ctx, func(ctx context.Context, g *coordination.Grant) error {
//		req, err := http.NewRequestWithContext(ctx, "POST", url, body)
//		...
//		resp, err := client.Do(req) // 412 Precondition Failed: somebody else holds the lease by now
//		...
//	})
//
// # What the caller must do
//
//  1. Let all effects on one resource carry tokens of one lease. Tokens of different leases have no order.
//  2. Let every effect on the resource go through the fence. What goes around it is not refused.
//  3. Let only those bring tokens who may have the lease. One that is made up and high keeps everybody out.
//  4. Keep the fence as durable as what it protects: a Guard forgets with its process.
//
// # What is guaranteed
//
// When an effect with a token was admitted, no effect with a lower one is admitted afterwards, and with
// Guard and Table none is under way either. Equal tokens are of one tenure and do not exclude each other.
// A fence cannot tell that a newer tenure exists before the first effect of that tenure, so until then
// effects of the old one are admitted: they are ordered before it. Register is weaker, since replicas do
// not ask each other: see there.
//
// The scheme is the sequencer of Burrows, "The Chubby lock service for loosely-coupled distributed
// systems" (2006).
package fence
