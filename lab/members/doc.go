// Package members contains only tests of package node: members in processes of their own, which
// are stopped by signals, make mistakes in their configuration, use TLS, and are attacked.
package members
