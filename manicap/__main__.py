from manicap.cli.main import main

main()
