// Package contain runs functions of the application on goroutines of this module: a panic there is
// logged as one of the application, and affects nothing else. The application's functions are not
// only those that it passes to this module. A message to an actor that has stopped becomes a dead
// letter, and Proto.Actor calls the subscribers of the event stream on the goroutine that sends it.
// Outside an actor such a panic would end the process; in an actor of this module it would restart
// it. So all of this module sends with this package.
//
// Not contained: Proto.Actor's own dead letters, like that of a Terminated for a watcher that has
// stopped, and a subscriber that ends the goroutine.
package contain
