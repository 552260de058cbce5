// Package guard stands between gRPC and Proto.Actor's remoting, at both ends of every stream.
//
// Proto.Actor believes what arrives: it uses indices unchecked, decodes whatever fits into memory,
// passes on what is for another address, and takes every address in a message for that of its
// sender. The guard reads each message as bytes, before it is decoded, and lets through what the
// peer of the stream may say:
//
//	bytes ─▶ seal (secret) ─▶ bounds (scan) ─▶ decode ─▶ indices, types ─▶ addresses ─▶ Proto.Actor
//
// # Who the peer is
//
// A stream begins with a ConnectRequest that names the address for which it speaks. It is proven
// once, before anything else of the stream is read, in one of three ways:
//
//   - TLS: the certificate of the connection speaks for the address; see Speaks.
//   - Secret: the message, and every later one, carries a seal that only holders of the cluster's
//     secret can make; see seal.
//   - Otherwise by calling back: the guard asks whoever listens at the address whether the stream is
//     its own; see vouch. That keeps out everybody who does not read the traffic between members.
//
// From then on every address in a message is compared with that of the peer.
package guard
