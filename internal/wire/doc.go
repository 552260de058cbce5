// Package wire seals all messages that Concord sends between processes into one message type, which
// never changes.
//
// Proto.Actor closes a connection, or stops the process, when it receives an unknown message type.
// A node that receives an unknown manifest in a known envelope drops one payload and counts it.
//
// The envelope identifies the sender and the receiver by member id and incarnation. Addresses are
// reused after a restart, and connections deliver messages that were meant for the previous process
// at that address. A receiver therefore compares incarnations and drops messages that are not for
// it.
package wire
