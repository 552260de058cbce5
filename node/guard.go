package node

import "github.com/concord-go/concord/node/internal/guard"

// process is shared by the guards of all incarnations: one member runs per process, and gRPC does
// not know about actor systems.
var process guard.Process

// Refusals returns how many messages, streams and calls the guard of this process has rejected, by
// reason, for metrics and dashboards. The caller owns the map.
// Reasons are
//
//	call        a call that remoting does not implement
//	stream      a stream that does not begin or continue as a remoting stream
//	batch       a batch that would have crashed Proto.Actor
//	message     a message of an unknown type, or one that would have stopped an actor
//	bound       a bound on size or number is exceeded
//	unproven    a peer that has not proven that it is at the address it claims
//	forged      a message that speaks for another member
//	unlisted    a message of a process that is not a member, or not listed as one yet, for an
//	            actor that is not in Config.Public
//	relayed     a message for another address
//	seal        a message without the cluster's secret, or a replayed one
//	panic       a panic while a message was handled
func Refusals() map[string]uint64 { return process.Refusals() }
