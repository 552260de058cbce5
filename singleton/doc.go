// Package singleton keeps one instance of an actor in the whole cluster, under a lease, and finds it from
// every member.
//
//	session, err := coordination.Open(store, coordination.Config{})
//	jobs, err := singleton.New(system, session, singleton.Config{Name: "jobs", Role: "backend"},
//		func(t coordination.Tenure) actor.Actor { return &scheduler{tenure: t} })
//	// start the member, then from anywhere in it:
//	system.Root.Send(jobs.PID(), request)
//	reply, err := jobs.Ask(ctx, request)
package singleton
