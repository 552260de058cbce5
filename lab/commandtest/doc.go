// Package commandtest contains only tests that start go and bash: the modules of this repository,
// its examples elsewhere, and the completion of concordctl.
package commandtest
