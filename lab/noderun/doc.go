// Package noderun contains only tests of node.Run, in which one member listens at a real port.
package noderun
