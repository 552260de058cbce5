// Package cockpit serves the state of a member and its view of the cluster as a web page and
// as JSON. Program concordctl reads the JSON.
//
// A Handler is an http.Handler that the application mounts at any path:
//
//	var health node.Health
//	c, err := cockpit.New(cockpit.Config{Health: &health})
//	…
//	go http.ListenAndServe("127.0.0.1:7070", c)
//	node.Main(node.RunConfig{Health: &health, MinMembers: 2, …}, func(n *node.Node) error {
//		dd, err := distributeddata.New(n.System, distributeddata.Config{})
//		…
//		return c.Attach(n, cockpit.Sources{
//			Replicators: map[string]*distributeddata.Replicator{"shop": dd},
//		})
//	})
//
// It serves the page at /, the JSON of package api below /api/v1/, and, if Config.Metrics is set,
// /metrics. docs/cockpit.md describes each endpoint.
//
// # Cost
//
// A handler without clients has no goroutine and no timer, and takes no snapshots. While pages are
// open, one goroutine takes a snapshot every Config.Refresh, shared by all pages, and each page
// receives the sections that have changed. Each request does a bounded amount of work: lists are
// paginated, and a page of entries starts at a name without visiting the entries before it.
//
// # Access
//
// Without Config.Authorize, the handler serves clients on the loopback interface and clients with a
// TLS client certificate that the server has verified. It rejects all other requests, including
// those that a local proxy has forwarded. With Authorize, that function decides.
//
// The Host header of a request must be an IP address, localhost or one of Config.Hosts; this
// prevents DNS rebinding. The handler rejects requests that a browser sends on behalf of another
// site. It shows only the values that Config.Values selects, and Config.Hide hides names.
//
// Changes are possible only with Config.Actions, which requires Authorize. The page then has
// buttons that release a lease, move a shard or forget a member, for clients that Authorize allows
// to Act.
//
// # Limits
//
// A cockpit shows one member's view of the cluster, which may be outdated when it arrives. Events
// are kept in memory, up to a bound, for human readers. Use the metrics for monitoring.
package cockpit
