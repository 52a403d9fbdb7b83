"""`make numbers`: makes the measured figures of README.md and docs/ again, by the commands that stand beside them.

Marks in the sources, HTML comments that no reader sees, say what is made and how.

A console block with one command, which gets a name. If the block shows the output too, it is written again:

    <!-- numbers: commons-test skip="typo, lexical" to="Requests that" -->
    ```console
    $ toolsearch eval ranking --split test
    ```

`skip` leaves out rows that begin so (an ellipsis stands for them), `from` and `to` are the beginnings of the first line
and of the line after the last, `rows=12` keeps the first twelve rows of each table, `lines=3` the first three lines.
`quick` lets the tests run the command.

One figure, in a sentence or a cell, and the numbers in the text of a picture, in order, with a dash for one that stays:

    It finds .730<!-- = @commons-test index=keyword cases=all R@5 --> of them.
    ![From 5 to 9](a.svg)<!-- alt: -; @demo tools=9 tokens -->

The numbers of a table. The first line says what all cells share, the second has an expression for each column, with
bars between them, and each further line has one for a row, in order; where they differ, the column's counts. An empty
column, or a row `-`, stays as it is. A cell with several numbers has as many expressions, with `;` between them:

    <!-- cells: @commons-test R@5
    | | index=keyword | index=hybrid
    cases=all
    "cases=user wording"
    -->

The day when a command was run, with the commit of its code; and the reason why no command makes a table or a block:

    1 December 2026<!-- made: commons-test -->
    <!-- by hand: experiments with changed code -->

An expression names a command (`@commons-test`) or several (`@commons-test,commons-dev`), picks rows of the tables in
its JSON report (`index=keyword`), and names a key of these rows; what has a space is in quotes. `of=min`, `of=max` and
`of=mean` take several rows, `per=KEY` divides by another key, `table=Break-even` keeps to the tables whose titles begin
so. A figure keeps its form: .73, 0.730, 73 %, 1,234, and `.730 ±.049` with half the width of its 95 % interval. `±–` is
an interval that is not known yet, `–` alone a number that is not.

A command that names a folder of `SETS` is run if that folder is given (`make numbers SETS=FOLDER`), one that measures
times if they are asked for (`make numbers TIMES=1`); otherwise their figures stay as they are.
"""
