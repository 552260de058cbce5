// Package fence rejects writes from former lease holders.
//
// A process may be paused between a Check of its lease and the effect that follows, for longer than
// any time to live, and then act while another process holds the lease. No lease can prevent that,
// but the target of the effect can: it keeps the highest fencing token it has seen and rejects
// lower ones, in the same step as the effect. These kinds of target are covered:
//
//	Guard           effects of one process: a device, a file, a cache
//	Guard.Handler   an HTTP server; Transport puts the token into the requests of its clients
//	                an actor, with Envelope at the sender and TokenOfMessage at the receiver
//	Table           a database: the token is compared inside the caller's transaction
//	Register        a replicated value
//
// A service in front of a resource that does not know tokens:
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
//		resp, err := client.Do(req) // 412 Precondition Failed: the lease was lost
//		...
//	})
//
// # What the caller must do
//
//  1. All effects on one resource must carry tokens of one lease. Tokens of different leases
//     have no order.
//  2. Every effect on the resource must go through the fence. An effect that bypasses the fence
//     is not rejected.
//  3. Accept tokens only from processes that may hold the lease. A forged high token locks
//     everybody out.
//  4. Keep the fence as durable as what it protects: a Guard is lost with its process.
//
// # What is guaranteed
//
// After an effect with a token was admitted, no effect with a lower token is admitted. With Guard
// and Table, no effect with a lower token is still running either. Effects with equal tokens belong
// to one tenure and do not exclude each other. A fence learns of a newer tenure only from its first
// effect; until then it admits effects of the old tenure, which are ordered before it. Register
// gives a weaker guarantee, since replicas do not ask each other; see there.
//
// The scheme is the sequencer of Burrows, "The Chubby lock service for loosely-coupled distributed
// systems" (2006).
//
// docs/leases.md is the guide. The programs examples/fencing and examples/job show a write that is
// rejected.
package fence
