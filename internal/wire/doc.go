// Package wire seals everything Concord sends between processes into one message type, for ever.
//
// Proto.Actor tears down a connection, or the process, at a message type it does not know. A
// node that meets an unknown manifest in a known envelope drops one payload and counts it.
//
// The envelope says who sends, and to whom: member id and incarnation. Addresses are used again
// after a restart, and connections deliver what was meant for the former process on that
// address, so a receiver compares incarnations and drops what is not for it.
package wire
