// Package automanaged contains only the tests of package node/provider/automanaged in which members
// are processes.
package automanaged
