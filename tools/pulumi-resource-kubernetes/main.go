// The Kubernetes provider of Pulumi as a plain command, for tests that attach the engine to it.
//
// The program that its own repository builds embeds a generated schema that no module holds. Nothing asks for it here: the engine
// reads schemas only to generate code, and the SDK that a program uses was generated from it already.
package main

import (
	"fmt"
	"os"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

// Set by the linker.
var version = "v0.0.0"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		fmt.Println(version)
		return
	}
	provider.Serve("kubernetes", version, []byte("{}"), []byte("{}"))
}
