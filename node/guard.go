package node

import "github.com/concord-go/concord/node/internal/guard"

// process is what the guards of all lives share: one member runs in a process, and gRPC knows nothing
// of systems.
var process guard.Process

// Refused returns how many messages, streams and calls the guard of this process has refused.
func Refused() uint64 { return process.Refused() }

// Refusals returns the same by reason, for metrics and dashboards. The map is the caller's. Reasons are
//
//	call        a call that remoting does not implement
//	stream      a stream that does not begin, or go on, as one of remoting
//	batch       a batch that would have crashed Proto.Actor
//	message     a message of an unknown type, or that would have stopped an actor
//	bound       beyond a bound of size or number
//	unproven    a peer that has not proven that it is at the address it claims
//	forged      a message that speaks for another member
//	relayed     a message for another address
//	not-public  a message for an actor that is not in Config.Public
//	seal        a message without the cluster's secret, or one sent before
//	panic       a panic while a message was handled
func Refusals() map[string]uint64 { return process.Refusals() }
