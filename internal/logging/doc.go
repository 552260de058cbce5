// Package logging keeps a log handler of the application, such as one that writes to a pipe that
// nobody reads, from stopping the actors and goroutines of this module, which all log.
package logging
