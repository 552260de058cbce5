// Package hostile holds no code, only tests: what somebody who reaches the port of a member can do, tried on
// real processes.
//
// The driver, which is the test, starts three members by executing the test binary again. They host a singleton under
// a lease, and replicate a counter to a majority. A stranger attacks one of them with a gRPC client of its own,
// and, where that helps it, listens at an address of its own and vouches for every stream. After each
// attack the members must be what they were: the same processes in their first life, three in every view,
// one instance of the singleton and never two at a time, updates that a majority confirms, and
// goroutines and memory back where they were.
//
// Without flags some attacks are made on members without TLS and secret. "make hostile" makes all, on members
// without, with a secret, and with TLS.
package hostile
