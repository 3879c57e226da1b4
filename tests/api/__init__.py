"""Bad input through everything that users call: one clear error that names the thing and says what to do, nothing half-written.

Each table here holds what no other test does. What is checked elsewhere, and how many cases there are:

    called                 elsewhere                                                                      here
    command line           tests/cli/test_main.py (35), test_options.py (33), test_fmt.py (5),            test_command_line.py
                           test_tune.py (5), test_check.py (3), test_compile.py (3), test_new.py (2)
    texts and imports      tests/syntax/test_errors.py, tests/check/test_typing.py, test_modules.py,      test_command_line.py
                           tests/source/test_reading.py, tests/*/test_hostile.py (some hundreds)
    stmlang.compile        tests/check/test_api.py (14),  tests/plan/test_choose.py (20),                 test_compile.py
                           tests/scan/test_sizes.py (8)
    CompiledScan           tests/runtime/test_compile.py (20)                                             test_call.py
    ScanLayer, models      tests/nn/test_layer.py (8), tests/models/test_plstm.py (3)                     test_layer.py
    artifacts              tests/runtime/test_artifact.py (27)                                            test_artifact.py
    graph files            tests/graph/test_readers.py (72), test_readers_*.py (100),                     test_graph_files.py,
                           test_dataset_tu.py (61)                                                        test_graphs.py
    graphs of a program    tests/graph/test_convert_refusals.py (81), test_batch.py (45)                  test_graphs.py
    the study on graphs    tests/experiments/test_tudataset.py (10), test_tudataset_download.py (20)      test_graphs.py
    caches                 tests/plan/test_tuned.py (11), test_calibration.py (6)                         test_command_line.py
"""
