// Package guard stands between gRPC and Proto.Actor's remoting, at both ends of every stream.
//
// Proto.Actor trusts its input: it uses indices unchecked, decodes whatever fits into memory,
// relays messages for other addresses, and takes every address in a message for that of its sender.
// The guard inspects the bytes of each message before it is decoded, and passes on only what the
// peer of the stream may send:
//
//	bytes ─▶ seal (secret) ─▶ bounds (scan) ─▶ decode ─▶ indices, types ─▶ addresses ─▶ Proto.Actor
//
// # Identity of the peer
//
// A stream begins with a ConnectRequest that names the address of its peer. The address is proven
// once, before anything else of the stream is read, in one of three ways:
//
//   - TLS: the certificate of the connection is valid for the address; see Speaks.
//   - Secret: the message, and every later one, carries a seal that only holders of the cluster's
//     secret can create; see seal.
//   - Otherwise by calling back: the guard asks the process that listens on the address whether
//     the stream is its own; see vouch. That keeps out every process that cannot read the traffic
//     between members.
//
// From then on every address in a message is compared with that of the peer.
package guard
